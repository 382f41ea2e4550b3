package mlxc

import (
	"errors"
	"regexp"
	"strings"
)

// sourceLocation matches the position in mlx-c's source that mlx-c appends to messages. It has no meaning for users.
var sourceLocation = regexp.MustCompile(` at [^ ]+\.(cpp|h):\d+$`)

// errorFromMLX converts a message of MLX to an error, with a better text or a hint if there is one.
func errorFromMLX(text string) error {
	if text == shutdownMessage {
		return ErrShutdown
	}
	for _, e := range replacedMessages {
		if strings.HasPrefix(text, e.mlx) {
			return errors.New(e.ours)
		}
	}
	text = sourceLocation.ReplaceAllString(text, "")
	for _, e := range hints {
		if !strings.Contains(text, e.mlx) {
			continue
		}
		// Add the hint once, even if the error passed through several calls.
		if !strings.Contains(text, e.advice) {
			text += e.advice
		}
		break
	}
	return errors.New(text)
}

// replacedMessages replaces messages that refer to MLX's internals. mlx is a prefix of the message.
var replacedMessages = []struct{ mlx, ours string }{
	{
		"[eval] Attempting to eval an array without a primitive",
		"the array is, or depends on, a placeholder of a function under Compile, Vmap or another transform and has " +
			"no value outside the function: return the needed values from the function",
	},
	{
		"[compile] Attempting to compile a function with uncaptured inputs",
		"the function captures an array that is also one of its arguments: use the argument inside the function",
	},
}

const kernelGradientHint = " (a custom kernel has only the gradient that CustomFunction or CustomVJP defines, and no " +
	"second derivative: use MLX's own operations, such as mlxc.RMSNorm, to differentiate twice)"

const exportHint = " (a file cannot hold a kernel for the CPU, which is a function of this process: export " +
	"for a Mac inside WithPlaceholderGPU, or use MLX's own operations)"

const noGradientHint = " (MLX has no gradient for this operation: use StopGradient if none is needed, or define one " +
	"with CustomVJP)"

// hints adds advice to messages that only name a failed primitive or class of MLX. mlx is a part of the message. Only
// the first match is used.
var hints = []struct{ mlx, advice string }{
	{"Not implemented for CustomKernel", kernelGradientHint},
	{"] has no gradient", kernelGradientHint},
	{"[Primitive::vjp] Not implemented for", noGradientHint},
	{"Unable to serialize primitive mlxgrad.", exportHint},
	{"Unable to get state for primitive mlxgrad.", exportHint},
}
