package mlxc

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ConvConfig holds the options of a convolution. Lists have one entry per spatial axis, or one for all. The zero value
// has stride 1, no padding, dilation 1 and one group.
type ConvConfig struct {
	Stride   []int // step between neighboring results, at least 1; nil for 1
	Padding  []int // zeros on either side of the input, at least 0
	Dilation []int // distance of neighboring kernel elements, at least 1; nil for 1
	// Groups is the number of parts into which input and output channels are split and convolved separately; 0 for 1.
	// MLX supports more than one group for one and two spatial axes only.
	Groups int
}

// Conv1D returns the cross-correlation, called convolution in machine learning, of input of shape (N,L,C) with weight
// of shape (O,K,C/Groups). The result has shape (N,L',O) with L' = ⌊(L + 2·Padding − Dilation·(K−1) − 1)/Stride⌋ + 1.
// Both operands are float16, bfloat16 or float32, and promoted. MLX has some second derivatives of convolutions; the
// others are errors.
func Conv1D(input, weight *Array, c ConvConfig) *Array { return conv("conv1d", 1, input, weight, c) }

// Conv2D is Conv1D with two spatial axes: input (N,H,W,C), weight (O,KH,KW,C/Groups).
func Conv2D(input, weight *Array, c ConvConfig) *Array { return conv("conv2d", 2, input, weight, c) }

// Conv3D is Conv1D with three spatial axes: input (N,D,H,W,C), weight (O,KD,KH,KW,C).
func Conv3D(input, weight *Array, c ConvConfig) *Array { return conv("conv3d", 3, input, weight, c) }

func conv(op string, dims int, input, weight *Array, c ConvConfig) *Array {
	if n := input.NDim(); input.Err() == nil && n != dims+2 {
		return invalid(opError(op, fmt.Errorf("the input has %d axes: it must have %d, batch, space and channels", n,
			dims+2), input, weight))
	}
	return convGeneral(op, input, weight, ConvGeneralConfig{
		Stride: c.Stride, PaddingLow: c.Padding, PaddingHigh: c.Padding, Dilation: c.Dilation, Groups: c.Groups,
	})
}

// ConvGeneralConfig holds all options of MLX's convolution.
type ConvGeneralConfig struct {
	Stride        []int
	PaddingLow    []int // zeros before the input, at least 0
	PaddingHigh   []int // zeros after the input, at least 0
	Dilation      []int
	InputDilation []int // distance of neighboring input elements, with zeros between, at least 1; nil for 1
	Groups        int
	Flip          bool // flips the kernel, for a convolution in the mathematical sense
}

// ConvGeneral is Conv1D, Conv2D or Conv3D, by the number of axes, with all options of MLX's convolution.
func ConvGeneral(input, weight *Array, c ConvGeneralConfig) *Array {
	return convGeneral("conv_general", input, weight, c)
}

func convGeneral(op string, input, weight *Array, c ConvGeneralConfig) *Array {
	fail := func(err error) *Array { return invalid(opError(op, err, input, weight)) }
	separate := false // pad with an operation before the convolution
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
			if *p.list, err = perSpatialAxis(p.name, *p.list, dims, p.min, p.def); err != nil {
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
				return fail(fmt.Errorf("the kernel spans %d along spatial axis %d, the padded input only %d", need, i,
					room))
			}
			// MLX writes outside a convolution's result if the padding exceeds its size. The first condition is for
			// the forward result, the third for the input's gradient, whose padding is need−1−low. The second is for
			// gradients, which have wrong shapes if the padding is at least the kernel's span (faults
			// conv-gradient-large-padding and conv-gradient-dilated-input).
			low, result := c.PaddingLow[i], (room-need)/c.Stride[i]+1
			separate = separate || low > result*c.Stride[i] || low >= need || need-1-low > n
			// Limit the steps: longer ones have the same result but overflow MLX's 32 bits, and MLX would write outside
			// its memory.
			c.Stride[i] = min(c.Stride[i], room)
			if k == 1 {
				c.Dilation[i] = 1
			}
			if n == 1 {
				c.InputDilation[i] = 1
			}
		}
	}
	if c.Groups == 0 {
		c.Groups = 1
	}
	if c.Groups < 1 {
		return fail(fmt.Errorf("Groups is %d: it must be at least 1", c.Groups))
	}
	// MLX's gradients have wrong shapes for asymmetric padding (fault conv-gradient-asymmetric-padding), and some do
	// not exist for a dilated input with a stride above 1.
	if input.Err() == nil && weight.Err() == nil &&
		(separate || !slices.Equal(c.PaddingLow, c.PaddingHigh) || slices.Max(c.InputDilation) > 1 &&
			slices.Max(c.Stride) > 1) {
		laid := input.layOut(c.PaddingLow, c.PaddingHigh, c.InputDilation)
		defer laid.Free()
		input = laid
		c.PaddingLow = make([]int, len(c.Stride))
		c.PaddingHigh = c.PaddingLow
		c.InputDilation = slices.Repeat([]int{1}, len(c.Stride))
	}
	return mlxConvGeneral(input, weight, c.Stride, c.PaddingLow, c.PaddingHigh, c.Dilation, c.InputDilation, c.Groups,
		c.Flip)
}

// layOut returns the input with its elements `dilation` apart and zeros around them.
func (a *Array) layOut(low, high, dilation []int) *Array {
	shape := a.Shape()
	start, stop, strides := make([]int, len(shape)), slices.Clone(shape), slices.Repeat([]int{1}, len(shape))
	for i, d := range dilation {
		k := i + 1
		start[k], strides[k] = low[i], d
		stop[k] = low[i] + (shape[k]-1)*d + 1
		shape[k] = stop[k] + high[i]
	}
	zeros := Zeros(a.DType(), shape...)
	defer zeros.Free()
	return zeros.SliceUpdate(a, start, stop, strides)
}

// ConvTransposeConfig holds the options of a transposed convolution; see ConvConfig.
type ConvTransposeConfig struct {
	Stride        []int // step between the kernels of neighboring inputs, at least 1; nil for 1
	Padding       []int // elements removed on either side of the result, at least 0
	Dilation      []int // distance of neighboring kernel elements, at least 1; nil for 1
	OutputPadding []int // added to the size of the result, at least 0
	Groups        int
}

// ConvTranspose1D returns the transposed convolution, the gradient of Conv1D with respect to its input. Every element
// of input adds a multiple of the kernel to the result. input has shape (N,L,C), and weight (O,K,C/Groups). The result
// has shape (N,L',O) with L' = Stride·(L−1) − 2·Padding + Dilation·(K−1) + 1 + OutputPadding.
func ConvTranspose1D(input, weight *Array, c ConvTransposeConfig) *Array {
	return convTranspose("conv_transpose1d", 1, input, weight, c)
}

// ConvTranspose2D is ConvTranspose1D with two spatial axes: input (N,H,W,C), weight (O,KH,KW,C/Groups).
func ConvTranspose2D(input, weight *Array, c ConvTransposeConfig) *Array {
	return convTranspose("conv_transpose2d", 2, input, weight, c)
}

// ConvTranspose3D is ConvTranspose1D with three spatial axes: input (N,D,H,W,C), weight (O,KD,KH,KW,C).
func ConvTranspose3D(input, weight *Array, c ConvTransposeConfig) *Array {
	return convTranspose("conv_transpose3d", 3, input, weight, c)
}

// convTranspose convolves the input with the flipped kernel. The stride becomes the input's dilation, and the padding
// becomes Dilation·(K−1) − Padding.
func convTranspose(op string, dims int, input, weight *Array, c ConvTransposeConfig) *Array {
	fail := func(err error) *Array { return invalid(opError(op, err, input, weight)) }
	general := ConvGeneralConfig{Groups: c.Groups, Flip: true, InputDilation: c.Stride, Dilation: c.Dilation}
	if input.Err() == nil && weight.Err() == nil {
		if n := input.NDim(); n != dims+2 || weight.NDim() != n {
			return fail(fmt.Errorf("input and weight have %d and %d axes: they must have %d", n, weight.NDim(), dims+2))
		}
		if _, err := perSpatialAxis("stride", c.Stride, dims, 1, 1); err != nil {
			return fail(err)
		}
		dilation, err := perSpatialAxis("dilation", c.Dilation, dims, 1, 1)
		if err != nil {
			return fail(err)
		}
		padding, err := perSpatialAxis("padding", c.Padding, dims, 0, 0)
		if err != nil {
			return fail(err)
		}
		more, err := perSpatialAxis("output padding", c.OutputPadding, dims, 0, 0)
		if err != nil {
			return fail(err)
		}
		for i := range dims {
			reach := dilation[i] * (weight.Dim(i+1) - 1)
			if padding[i] > reach {
				return fail(fmt.Errorf("the padding along spatial axis %d is %d: it must be at most %d, Dilation·(K−1)",
					i, padding[i], reach))
			}
			general.PaddingLow = append(general.PaddingLow, reach-padding[i])
			general.PaddingHigh = append(general.PaddingHigh, reach-padding[i]+more[i])
		}
	}
	return convGeneral(op, input, weight, general)
}

// checkConv returns an error for wrong numbers of axes, for dtypes that MLX supports only in part, and for empty
// operands: MLX would divide by their sizes (fault conv-without-channels).
func checkConv(input, weight *Array) error {
	switch {
	case input.NDim() < 3 || input.NDim() > 5:
		return fmt.Errorf("the input has %d axes: it must have 3 to 5, batch, space and channels", input.NDim())
	case weight.NDim() != input.NDim():
		return fmt.Errorf("the weight has %d axes: it must have %d, as the input", weight.NDim(), input.NDim())
	case input.DType() == Float64 || weight.DType() == Float64: // MLX supports it in part
		return errors.New("MLX convolves float16, bfloat16 and float32: convert with AsType(Float32)")
	case input.DType() == Complex64 || weight.DType() == Complex64: // MLX fails at evaluation
		return errors.New("MLX convolves float16, bfloat16 and float32: convolve the real and imaginary parts")
	case input.Size() == 0 || weight.Size() == 0:
		return errors.New("an operand has an axis of size 0")
	}
	return nil
}

// perSpatialAxis returns one checked entry per spatial axis for a list of the config.
func perSpatialAxis(name string, list []int, dims, least, otherwise int) ([]int, error) {
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
