package mlxc

// Element-wise exponentials and logarithms. Integers and booleans are computed as float32, every other dtype in its
// own.

// Exp returns eᵃ.
func (a *Array) Exp() *Array { return mlxExp(a) }

// Expm1 returns eᵃ − 1, accurate near 0.
func (a *Array) Expm1() *Array { return mlxExpm1(a) }

// Log returns the natural logarithm: −∞ for 0, NaN for negative numbers.
func (a *Array) Log() *Array { return mlxLog(a) }

// Log2 returns the logarithm to base 2: −∞ for 0, NaN for negative numbers.
func (a *Array) Log2() *Array { return mlxLog2(a) }

// Log10 returns the logarithm to base 10: −∞ for 0, NaN for negative numbers.
func (a *Array) Log10() *Array { return mlxLog10(a) }

// Log1p returns ln(1 + a), accurate near 0.
func (a *Array) Log1p() *Array { return mlxLog1p(a) }

// LogAddExp returns ln(eᵃ + eᵇ) without overflow. It is −∞ where both operands are.
func (a *Array) LogAddExp(b *Array) *Array { return mlxLogaddexp(a, b) }

// Sigmoid returns 1/(1+e⁻ᵃ).
func (a *Array) Sigmoid() *Array { return mlxSigmoid(a) }

// Erf returns the error function, 2/√π · ∫₀ᵃ e^(−t²) dt.
func (a *Array) Erf() *Array { return mlxErf(a) }

// ErfInv returns the inverse of the error function: −∞ and ∞ for −1 and 1, NaN outside [−1, 1].
func (a *Array) ErfInv() *Array { return mlxErfinv(a) }
