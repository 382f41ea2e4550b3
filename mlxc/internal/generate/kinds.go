package main

import "strings"

// A kind is the way in which Go passes a C parameter. A function with an irregular parameter is not generated.
type kind int

const (
	irregular    kind = iota
	array             // const mlx_array
	optional          // the same, where NULL is allowed: a nil *Array
	arrayList         // const mlx_vector_array
	stream            // const mlx_stream: the caller's current one
	integer           // int
	integers          // const int* and size_t
	longIntegers      // const int64_t* and size_t
	size              // size_t
	seed              // uint64_t
	boolean           // bool
	single            // float
	double            // double
	dtype             // mlx_dtype
	optInteger        // mlx_optional_int: 0 stands for none
	optSingle         // mlx_optional_float: nil stands for none
	optDType          // mlx_optional_dtype: Invalid stands for none
	text              // const char*
	fftNorm           // mlx_fft_norm
)

var kindOf = map[string]kind{
	"const mlx_array":        array,
	"const mlx_vector_array": arrayList,
	"const mlx_stream":       stream,
	"int":                    integer,
	"const int*":             integers,
	"const int64_t*":         longIntegers,
	"size_t":                 size,
	"uint64_t":               seed,
	"bool":                   boolean,
	"float":                  single,
	"double":                 double,
	"mlx_dtype":              dtype,
	"mlx_optional_int":       optInteger,
	"mlx_optional_float":     optSingle,
	"mlx_optional_dtype":     optDType,
	"const char*":            text,
	"mlx_fft_norm":           fftNorm,
}

// argument is a parameter of the Go function. It stands for one C parameter, or for a list and its length.
type argument struct {
	name string
	kind kind
}

// call is a declaration in the types of Go.
type call struct {
	declaration
	arrays int // how many mlx_array results it has
	list   bool
	args   []argument // without the results
}

// parse returns the call of a regular declaration: the results, which are arrays or one list of arrays, come first, and
// all other parameters have a kind.
func (d declaration) parse() (call, bool) {
	c := call{declaration: d}
	if d.result != "int" {
		return c, false
	}
	params := d.params
	for len(params) > 0 && params[0].ctype == "mlx_array*" {
		c.arrays++
		params = params[1:]
	}
	if c.arrays == 0 && len(params) > 0 && params[0].ctype == "mlx_vector_array*" {
		c.list = true
		params = params[1:]
	}
	if c.arrays == 0 && !c.list {
		return c, false
	}
	for i := 0; i < len(params); i++ {
		p := params[i]
		k := kindOf[p.ctype]
		switch k {
		case irregular:
			return c, false
		case array:
			if p.nullable {
				k = optional
			}
		case text:
			if p.nullable { // mlx-c has no such parameter
				return c, false
			}
		case integers, longIntegers:
			if i+1 == len(params) || params[i+1].ctype != "size_t" {
				return c, false
			}
			i++
		}
		c.args = append(c.args, argument{name: goParameter(p.name), kind: k})
	}
	return c, true
}

// elementwise holds the binary operations that mlxg_elementwise can add. For operands of the same dtype and shape,
// their primitive depends only on the dtype.
var elementwise = map[string]bool{
	"mlx_add": true, "mlx_subtract": true, "mlx_multiply": true, "mlx_divide": true, "mlx_power": true,
	"mlx_maximum": true, "mlx_minimum": true, "mlx_logaddexp": true,
	"mlx_equal": true, "mlx_not_equal": true, "mlx_less": true, "mlx_less_equal": true,
	"mlx_greater": true, "mlx_greater_equal": true,
	"mlx_logical_and": true, "mlx_logical_or": true,
}

// complexUnary holds the unary operations with MLX's fault complex-vjp-conjugate.
var complexUnary = map[string]bool{
	"mlx_abs": true, "mlx_sign": true, "mlx_sqrt": true, "mlx_rsqrt": true,
	"mlx_sin": true, "mlx_cos": true, "mlx_tan": true,
	"mlx_arcsin": true, "mlx_arccos": true, "mlx_arctan": true,
	"mlx_arcsinh": true, "mlx_arccosh": true, "mlx_arctanh": true,
}

// regular reports whether the function adds nodes to the graph and has only parameters and results with a kind.
func (d declaration) regular() bool {
	switch d.header {
	case "ops", "fast", "fft", "linalg", "random", ahead:
		_, ok := d.parse()
		return ok
	}
	return false
}

// goName returns the Go name of a C function, such as mlxAddMM for mlx_addmm.
func goName(name string) string {
	var b strings.Builder
	b.WriteString("mlx")
	for _, part := range strings.Split(strings.TrimPrefix(name, "mlx_"), "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// goParameter returns the C name without underscores, or another name for Go's keywords.
func goParameter(name string) string {
	var b strings.Builder
	for i, part := range strings.Split(strings.Trim(name, "_"), "_") {
		if i > 0 && part != "" {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		b.WriteString(part)
	}
	switch s := b.String(); s {
	case "type", "func", "range", "map", "op", "out", "err", "C":
		return s + "_"
	case "S", "M", "UPLO":
		return strings.ToLower(s)
	default:
		return s
	}
}

// opName returns the operation's name in errors. It omits suffixes such as _axes.
func opName(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "mlx_"), "fast_")
	for _, suffix := range []string{"_axes", "_axis", "_single", "_sections"} {
		if s, ok := strings.CutSuffix(name, suffix); ok && s != "put_along" && s != "take_along" {
			return s
		}
	}
	return name
}
