package mlxc

import (
	"errors"
	"regexp"
	"strings"
)

// mlx-c appends the place in its own source, which says nothing to a user.
var place = regexp.MustCompile(` at [^ ]+\.(cpp|h):\d+$`)

func errorFromMLX(text string) error {
	if text == shutDown {
		return ErrShutdown
	}
	for _, e := range replacedMessages {
		if strings.HasPrefix(text, e.mlx) {
			return errors.New(e.ours)
		}
	}
	text = place.ReplaceAllString(text, "")
	for _, e := range hints {
		if !strings.Contains(text, e.mlx) {
			continue
		}
		// Once, whatever functions of Go and MLX the error has come through.
		if !strings.Contains(text, e.advice) {
			text += e.advice
		}
		break
	}
	return errors.New(text)
}

// replacedMessages are errors of which MLX speaks as if to those who know its insides.
var replacedMessages = []struct{ mlx, ours string }{
	{
		"[eval] Attempting to eval an array without a primitive",
		"the array stands for an argument of a function under Compile, Vmap or another transform, or depends on one, and has no value outside of it: let the function return what is needed",
	},
	{
		"[compile] Attempting to compile a function with uncaptured inputs",
		"the function captures an array that is among its arguments too: use the argument that it is given",
	},
}

const gradientElsewhere = " (a custom kernel has the gradient that CustomFunction or CustomVJP gives it, and no second one: what is differentiated twice needs MLX's own operations, such as mlxc.RMSNorm)"

const exportElsewhere = " (kernels that run on a CPU are functions of this process: export inside WithPlaceholderGPU, for a Mac, or with MLX's own operations)"

const noGradient = " (MLX has no gradient for this: use StopGradient where none is wanted, or give one with CustomVJP)"

// hints are errors that say what cannot be, often of a class of MLX's own, and not what to do;
// the first that fits counts.
var hints = []struct{ mlx, advice string }{
	{"Not implemented for CustomKernel", gradientElsewhere},
	{"] has no gradient", gradientElsewhere},
	{"[Primitive::vjp] Not implemented for", noGradient},
	{"Unable to serialize primitive", exportElsewhere},
	{"Unable to get state for primitive", exportElsewhere},
}
