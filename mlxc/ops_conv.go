package mlxc

import (
	"errors"
	"fmt"
	"math"
)

// ConvConfig says how a convolution walks. Lists have one entry for every spatial axis, or
// one for all of them. The zero value moves by 1 and adds nothing.
type ConvConfig struct {
	Stride   []int // between neighbours of the result, 1 or more; nil stands for 1
	Padding  []int // zeros on either side of the input, 0 or more
	Dilation []int // between neighbours of the kernel, 1 or more; nil stands for 1
	// Groups cuts the channels of input and result into as many parts, each convolved by
	// itself; 0 stands for 1. MLX knows more than one for one and two spatial axes.
	Groups int
}

// Conv1D returns the cross-correlation, which machine learning calls convolution, of input
// of shape (N,L,C) with weight of shape (O,K,C/Groups): shape (N,L',O) with
// L' = ⌊(L + 2·Padding − Dilation·(K−1) − 1)/Stride⌋ + 1. Both are float16, bfloat16 or
// float32, and promoted to a common dtype.
func Conv1D(input, weight *Array, c ConvConfig) *Array { return conv("conv1d", 1, input, weight, c) }

// Conv2D is Conv1D with two spatial axes: input (N,H,W,C), weight (O,KH,KW,C/Groups).
func Conv2D(input, weight *Array, c ConvConfig) *Array { return conv("conv2d", 2, input, weight, c) }

// Conv3D is Conv1D with three spatial axes: input (N,D,H,W,C), weight (O,KD,KH,KW,C).
func Conv3D(input, weight *Array, c ConvConfig) *Array { return conv("conv3d", 3, input, weight, c) }

func conv(op string, dims int, input, weight *Array, c ConvConfig) *Array {
	if n := input.NDim(); input.Err() == nil && n != dims+2 {
		return invalid(opError(op, fmt.Errorf("the input has %d axes: it must have %d, batch, space and channels", n, dims+2), input, weight))
	}
	return convGeneral(op, input, weight, ConvGeneralConfig{
		Stride: c.Stride, PaddingLow: c.Padding, PaddingHigh: c.Padding, Dilation: c.Dilation, Groups: c.Groups,
	})
}

// ConvGeneralConfig is ConvConfig with everything that MLX's convolution knows.
type ConvGeneralConfig struct {
	Stride        []int
	PaddingLow    []int // zeros before the input, 0 or more
	PaddingHigh   []int // zeros behind the input, 0 or more
	Dilation      []int
	InputDilation []int // between neighbours of the input, 1 or more; nil stands for 1
	Groups        int
	Flip          bool // turns the kernel around, which makes it a convolution of mathematics
}

// ConvGeneral is Conv1D, Conv2D or Conv3D, by the number of axes, with everything that
// MLX's convolution knows.
func ConvGeneral(input, weight *Array, c ConvGeneralConfig) *Array {
	return convGeneral("conv_general", input, weight, c)
}

func convGeneral(op string, input, weight *Array, c ConvGeneralConfig) *Array {
	fail := func(err error) *Array { return invalid(opError(op, err, input, weight)) }
	if input.Err() == nil && weight.Err() == nil {
		dims := input.NDim() - 2
		if err := checkConv(input, weight); err != nil {
			return fail(err)
		}
		for _, p := range []struct {
			name     string
			list     *[]int
			min, def int
		}{
			{"stride", &c.Stride, 1, 1},
			{"padding", &c.PaddingLow, 0, 0},
			{"padding", &c.PaddingHigh, 0, 0},
			{"dilation", &c.Dilation, 1, 1},
			{"input dilation", &c.InputDilation, 1, 1},
		} {
			var err error
			if *p.list, err = spatial(p.name, *p.list, dims, p.min, p.def); err != nil {
				return fail(err)
			}
		}
		for i := range dims {
			n, k := input.Dim(i+1), weight.Dim(i+1)
			room := (n-1)*c.InputDilation[i] + 1 + c.PaddingLow[i] + c.PaddingHigh[i]
			need := (k-1)*c.Dilation[i] + 1
			if room > math.MaxInt32 || need > math.MaxInt32 {
				return fail(fmt.Errorf("spatial axis %d spans more than 2³¹−1", i))
			}
			if need > room {
				return fail(fmt.Errorf("the kernel spans %d along spatial axis %d, the padded input only %d", need, i, room))
			}
		}
	}
	if c.Groups == 0 {
		c.Groups = 1
	}
	if c.Groups < 1 {
		return fail(errGroups(c.Groups))
	}
	return mlxConvGeneral(input, weight, c.Stride, c.PaddingLow, c.PaddingHigh, c.Dilation, c.InputDilation, c.Groups, c.Flip)
}

// ConvTransposeConfig says how a transposed convolution walks; see ConvConfig.
type ConvTransposeConfig struct {
	Stride        []int // between what neighbours of the input add to, 1 or more; nil stands for 1
	Padding       []int // cut off on either side of the result, 0 or more
	Dilation      []int // between neighbours of the kernel, 1 or more; nil stands for 1
	OutputPadding []int // added to the size of the result, 0 or more
	Groups        int
}

// ConvTranspose1D returns the transposed convolution, the gradient of Conv1D with regard
// to its input: every element of input, of shape (N,L,C), adds a copy of the kernel, of
// weight of shape (O,K,C/Groups), to the result, of shape (N,L',O) with
// L' = Stride·(L−1) − 2·Padding + Dilation·(K−1) + 1 + OutputPadding.
func ConvTranspose1D(input, weight *Array, c ConvTransposeConfig) *Array {
	return convTranspose("conv_transpose1d", 1, input, weight, c, func(s, p, d, o []int, groups int) *Array {
		return mlxConvTranspose1d(input, weight, s[0], p[0], d[0], o[0], groups)
	})
}

// ConvTranspose2D is ConvTranspose1D with two spatial axes.
func ConvTranspose2D(input, weight *Array, c ConvTransposeConfig) *Array {
	return convTranspose("conv_transpose2d", 2, input, weight, c, func(s, p, d, o []int, groups int) *Array {
		return mlxConvTranspose2d(input, weight, s[0], s[1], p[0], p[1], d[0], d[1], o[0], o[1], groups)
	})
}

// ConvTranspose3D is ConvTranspose1D with three spatial axes.
func ConvTranspose3D(input, weight *Array, c ConvTransposeConfig) *Array {
	return convTranspose("conv_transpose3d", 3, input, weight, c, func(s, p, d, o []int, groups int) *Array {
		return mlxConvTranspose3d(input, weight, s[0], s[1], s[2], p[0], p[1], p[2], d[0], d[1], d[2], o[0], o[1], o[2], groups)
	})
}

func convTranspose(op string, dims int, input, weight *Array, c ConvTransposeConfig,
	f func(stride, padding, dilation, outputPadding []int, groups int) *Array,
) *Array {
	fail := func(err error) *Array { return invalid(opError(op, err, input, weight)) }
	for _, p := range []struct {
		name     string
		list     *[]int
		min, def int
	}{
		{"stride", &c.Stride, 1, 1},
		{"padding", &c.Padding, 0, 0},
		{"dilation", &c.Dilation, 1, 1},
		{"output padding", &c.OutputPadding, 0, 0},
	} {
		var err error
		if *p.list, err = spatial(p.name, *p.list, dims, p.min, p.def); err != nil {
			return fail(err)
		}
	}
	if c.Groups == 0 {
		c.Groups = 1
	}
	if c.Groups < 1 {
		return fail(errGroups(c.Groups))
	}
	if input.Err() == nil && weight.Err() == nil {
		if n := input.NDim(); n != dims+2 {
			return fail(fmt.Errorf("the input has %d axes: it must have %d, batch, space and channels", n, dims+2))
		}
		if err := checkConv(input, weight); err != nil {
			return fail(err)
		}
		for i := range dims {
			whole := c.Stride[i]*(input.Dim(i+1)-1) + c.Dilation[i]*(weight.Dim(i+1)-1) + 1 + c.OutputPadding[i]
			if whole > math.MaxInt32 {
				return fail(fmt.Errorf("spatial axis %d spans more than 2³¹−1", i))
			}
			if whole-2*c.Padding[i] < 1 {
				return fail(fmt.Errorf("the padding cuts off all of spatial axis %d, which has %d", i, whole))
			}
			if c.Padding[i] > c.Dilation[i]*(weight.Dim(i+1)-1) {
				return fail(fmt.Errorf("the padding %d along spatial axis %d is more than the kernel spans", c.Padding[i], i))
			}
		}
	}
	return f(c.Stride, c.Padding, c.Dilation, c.OutputPadding, c.Groups)
}

// checkConv refuses what MLX would divide by.
func checkConv(input, weight *Array) error {
	switch {
	case input.NDim() < 3 || input.NDim() > 5:
		return fmt.Errorf("the input has %d axes: it must have 3 to 5, batch, space and channels", input.NDim())
	case weight.NDim() != input.NDim():
		return fmt.Errorf("the weight has %d axes: it must have %d, as the input", weight.NDim(), input.NDim())
	case input.DType() == Float64 || weight.DType() == Float64: // of which it knows some
		return errors.New("MLX convolves float16, bfloat16 and float32: convert with AsType(Float32)")
	case input.Size() == 0 || weight.Size() == 0:
		return errors.New("there is nothing to convolve: an axis has size 0")
	}
	return nil
}

// spatial completes a list of the config, and looks at its entries.
func spatial(name string, list []int, dims, least, otherwise int) ([]int, error) {
	out := make([]int, dims)
	for i := range out {
		switch len(list) {
		case 0:
			out[i] = otherwise
		case 1:
			out[i] = list[0]
		case dims:
			out[i] = list[i]
		default:
			return nil, fmt.Errorf("the %s %v has %d entries: it must have 1 or %d", name, list, len(list), dims)
		}
		if out[i] < least || out[i] > math.MaxInt32 {
			return nil, fmt.Errorf("the %s is %d: it must be %d to 2³¹−1", name, out[i], least)
		}
	}
	return out, nil
}

func errGroups(n int) error { return fmt.Errorf("there are %d groups: it must be 1 or more", n) }
