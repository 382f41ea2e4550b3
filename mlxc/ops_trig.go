package mlxc

// Element-wise trigonometric and hyperbolic functions; angles are in radians. Integers and booleans are computed as
// float32, every other dtype in its own. Outside a function's domain the result is NaN.

// Sin returns the sine.
func (a *Array) Sin() *Array { return mlxSin(a) }

// Cos returns the cosine.
func (a *Array) Cos() *Array { return mlxCos(a) }

// Tan returns the tangent.
func (a *Array) Tan() *Array { return mlxTan(a) }

// Arcsin returns the arcsine, in [−π/2, π/2].
func (a *Array) Arcsin() *Array { return mlxArcsin(a) }

// Arccos returns the arccosine, in [0, π].
func (a *Array) Arccos() *Array { return mlxArccos(a) }

// Arctan returns the arctangent, in (−π/2, π/2).
func (a *Array) Arctan() *Array { return mlxArctan(a) }

// Arctan2 returns the angle in [−π, π] of the point with ordinate a and abscissa x, like math.Atan2(a, x). The operands
// are broadcast. Complex operands are an error.
func (a *Array) Arctan2(x *Array) *Array { return mlxArctan2(a, x) }

// Sinh returns the hyperbolic sine.
func (a *Array) Sinh() *Array { return mlxSinh(a) }

// Cosh returns the hyperbolic cosine.
func (a *Array) Cosh() *Array { return mlxCosh(a) }

// Tanh returns the hyperbolic tangent.
func (a *Array) Tanh() *Array { return mlxTanh(a) }

// Arcsinh returns the inverse hyperbolic sine.
func (a *Array) Arcsinh() *Array { return mlxArcsinh(a) }

// Arccosh returns the inverse hyperbolic cosine, at least 0.
func (a *Array) Arccosh() *Array { return mlxArccosh(a) }

// Arctanh returns the inverse hyperbolic tangent: −∞ and ∞ for −1 and 1.
func (a *Array) Arctanh() *Array { return mlxArctanh(a) }

// Degrees converts radians to degrees: a · 180/π.
func (a *Array) Degrees() *Array { return mlxDegrees(a) }

// Radians converts degrees to radians: a · π/180.
func (a *Array) Radians() *Array { return mlxRadians(a) }
