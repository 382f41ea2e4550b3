package mlxc

// Trigonometric and hyperbolic functions, element by element, of angles in radians.
// Integers and booleans are computed as float32, every other dtype in its own. Outside a
// function's domain the result is NaN.

// Sin returns the sine.
func (a *Array) Sin() *Array { return mlxSin(a) }

// Cos returns the cosine.
func (a *Array) Cos() *Array { return mlxCos(a) }

// Tan returns the tangent.
func (a *Array) Tan() *Array { return mlxTan(a) }

// Arcsin returns the angle in [−π/2, π/2] whose sine a is.
func (a *Array) Arcsin() *Array { return mlxArcsin(a) }

// Arccos returns the angle in [0, π] whose cosine a is.
func (a *Array) Arccos() *Array { return mlxArccos(a) }

// Arctan returns the angle in (−π/2, π/2) whose tangent a is.
func (a *Array) Arctan() *Array { return mlxArctan(a) }

// Arctan2 returns the angle in [−π, π] of the point with the ordinate a and the abscissa x,
// like math.Atan2(a, x). They are broadcast to each other. It is not there for complex
// numbers.
func (a *Array) Arctan2(x *Array) *Array { return mlxArctan2(a, x) }

// Sinh returns the hyperbolic sine.
func (a *Array) Sinh() *Array { return mlxSinh(a) }

// Cosh returns the hyperbolic cosine.
func (a *Array) Cosh() *Array { return mlxCosh(a) }

// Tanh returns the hyperbolic tangent.
func (a *Array) Tanh() *Array { return mlxTanh(a) }

// Arcsinh returns the number whose hyperbolic sine a is.
func (a *Array) Arcsinh() *Array { return mlxArcsinh(a) }

// Arccosh returns the number from 0 on whose hyperbolic cosine a is.
func (a *Array) Arccosh() *Array { return mlxArccosh(a) }

// Arctanh returns the number whose hyperbolic tangent a is; −∞ and ∞ of −1 and 1.
func (a *Array) Arctanh() *Array { return mlxArctanh(a) }

// Degrees converts from radians, a · 180/π.
func (a *Array) Degrees() *Array { return mlxDegrees(a) }

// Radians converts from degrees, a · π/180.
func (a *Array) Radians() *Array { return mlxRadians(a) }
