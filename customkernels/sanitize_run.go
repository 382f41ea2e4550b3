package customkernels

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/checked"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

// checkedRun is a launch on its way through the checker.
type checkedRun struct {
	kernel  *Kernel
	launch  Launch
	text    string // what MLX generated
	source  *msl.HostSource
	buffers []checked.Buffer // as the source takes them
	names   []string         // of the slots: buffers, then threadgroup variables
}

// checkedLaunch generates the text of a launch and gathers its buffers.
func (k *Kernel) checkedLaunch(l Launch, inputs []*mlxc.Array) (*checkedRun, error) {
	if err := mlxc.Eval(slices.AppendSeq(slices.Clone(inputs), maps.Values(l.InOut))...); err != nil {
		return nil, err
	}
	text, source, err := k.rewritten(l, inputs)
	if err != nil {
		return nil, mlxc.NewError(k.name, err, inputs...)
	}
	s := &checkedRun{kernel: k, launch: l, text: text, source: source}
	for _, b := range source.Buffers {
		buffer, err := s.buffer(b.Name, inputs)
		if err != nil {
			return nil, mlxc.NewError(k.name, err, inputs...)
		}
		s.buffers = append(s.buffers, buffer)
		s.names = append(s.names, strings.TrimPrefix(b.Name, "mlxg_"))
	}
	return s, nil
}

// buffer finds what belongs to a buffer of the generated text: an input, an output, or what
// MLX adds to an input.
func (s *checkedRun) buffer(name string, inputs []*mlxc.Array) (checked.Buffer, error) {
	k := s.kernel
	if i := slices.Index(k.source.OutputNames, name); i >= 0 {
		return outputBuffer(s.launch.Outputs[i], s.launch.InOut[k.source.Outputs[i].Name], s.launch.InitValue)
	}
	if i := slices.Index(k.source.InputNames, name); i >= 0 {
		data, err := arrayBytes(inputs[i])
		return checked.Buffer{
			Data: data, Size: len(data), Cell: cellSize(inputs[i].DType()), Element: inputs[i].DType().Size(),
		}, err
	}
	for i, input := range k.source.InputNames {
		shape := inputs[i].Shape()
		switch name {
		case input + "_shape":
			dims := make([]int32, len(shape))
			for d, n := range shape {
				dims[d] = int32(n)
			}
			return constantBuffer(dims), nil
		case input + "_strides":
			strides, step := make([]int64, len(shape)), int64(1)
			for d, n := range slices.Backward(shape) {
				strides[d], step = step, step*int64(n)
			}
			return constantBuffer(strides), nil
		case input + "_ndim":
			return constantBuffer([]int32{int32(len(shape))}), nil
		}
	}
	return checked.Buffer{}, fmt.Errorf("the generated text has a buffer %s that this launch knows nothing of", name)
}

// constantBuffer is a buffer that a kernel only reads.
func constantBuffer[T any](values []T) checked.Buffer {
	var zero T
	data, size := sliceBytes(values), int(unsafe.Sizeof(zero))
	return checked.Buffer{Data: data, Size: len(data), Cell: size, Element: size}
}

// outputBuffer is the buffer of an output: it holds an array before the launch, or a value in
// every element, or nothing defined.
func outputBuffer(o mlxc.Output, content *mlxc.Array, init *float32) (checked.Buffer, error) {
	size := 1
	for _, n := range o.Shape {
		size *= n
	}
	b := checked.Buffer{
		Size: size * o.DType.Size(), Cell: cellSize(o.DType), Element: o.DType.Size(), Writable: true,
	}
	var err error
	switch {
	case content != nil:
		b.Data, err = arrayBytes(content)
	case init != nil:
		var one []byte
		one, err = arrayBytes(mlxc.Scalar(*init).AsType(o.DType))
		b.Data = slices.Repeat(one, size)
	}
	return b, err
}

// cellSize is the size of the numbers of a dtype.
func cellSize(d mlxc.DType) int {
	if d == mlxc.Complex64 {
		return 4
	}
	return d.Size()
}

// sliceBytes is the memory of a slice, never nil.
func sliceBytes[T any](values []T) []byte {
	var zero T
	if len(values) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(zero)))
}

func bytesAs[T mlxc.Element](a *mlxc.Array) ([]byte, error) {
	values, err := mlxc.ToSlice[T](a)
	return sliceBytes(values), err
}

// arrayBytes reads an array's elements in row-major order.
func arrayBytes(a *mlxc.Array) ([]byte, error) {
	switch a.DType() {
	case mlxc.Bool:
		return bytesAs[bool](a)
	case mlxc.Uint8:
		return bytesAs[uint8](a)
	case mlxc.Uint16:
		return bytesAs[uint16](a)
	case mlxc.Uint32:
		return bytesAs[uint32](a)
	case mlxc.Uint64:
		return bytesAs[uint64](a)
	case mlxc.Int8:
		return bytesAs[int8](a)
	case mlxc.Int16:
		return bytesAs[int16](a)
	case mlxc.Int32:
		return bytesAs[int32](a)
	case mlxc.Int64:
		return bytesAs[int64](a)
	case mlxc.Float16:
		return bytesAs[float16.Float16](a)
	case mlxc.Float32:
		return bytesAs[float32](a)
	case mlxc.Float64:
		return bytesAs[float64](a)
	case mlxc.BFloat16:
		return bytesAs[bfloat16.BFloat16](a)
	case mlxc.Complex64:
		return bytesAs[complex64](a)
	}
	return nil, fmt.Errorf("an array of %v cannot be read", a.DType())
}

func arrayAs[T mlxc.Element](data []byte, shape []int) *mlxc.Array {
	var zero T
	values := make([]T, len(data)/int(unsafe.Sizeof(zero)))
	copy(sliceBytes(values), data)
	return mlxc.FromSlice(values, shape...)
}

// arrayFromBytes makes an array of bytes in row-major order.
func arrayFromBytes(data []byte, o mlxc.Output) *mlxc.Array {
	shape := o.Shape
	if len(shape) == 0 {
		return arrayFromBytes(data, mlxc.Output{Shape: []int{1}, DType: o.DType}).Reshape()
	}
	switch o.DType {
	case mlxc.Bool:
		return arrayAs[uint8](data, shape).AsType(mlxc.Bool)
	case mlxc.Uint8:
		return arrayAs[uint8](data, shape)
	case mlxc.Uint16:
		return arrayAs[uint16](data, shape)
	case mlxc.Uint32:
		return arrayAs[uint32](data, shape)
	case mlxc.Uint64:
		return arrayAs[uint64](data, shape)
	case mlxc.Int8:
		return arrayAs[int8](data, shape)
	case mlxc.Int16:
		return arrayAs[int16](data, shape)
	case mlxc.Int32:
		return arrayAs[int32](data, shape)
	case mlxc.Int64:
		return arrayAs[int64](data, shape)
	case mlxc.Float16:
		return arrayAs[float16.Float16](data, shape)
	case mlxc.Float32:
		return arrayAs[float32](data, shape)
	case mlxc.Float64:
		return arrayAs[float64](data, shape)
	case mlxc.BFloat16:
		return arrayAs[bfloat16.BFloat16](data, shape)
	case mlxc.Complex64:
		return arrayAs[complex64](data, shape)
	}
	return mlxc.InvalidArray(fmt.Errorf("no array of %v", o.DType))
}

var threadgroupName = regexp.MustCompile(`\b(\w+) = mlxg::threadgroup_variable<\w+, (\d+)>`)

// nameThreadgroupVariables appends the names of the slots behind the buffers.
func (s *checkedRun) nameThreadgroupVariables(slots []checked.Slot) {
	names := map[int]string{}
	for _, m := range threadgroupName.FindAllStringSubmatch(s.source.Source, -1) {
		id, _ := strconv.Atoi(m[2])
		names[id] = strings.TrimPrefix(m[1], "mlxg_")
	}
	for _, slot := range slots[min(len(s.buffers), len(slots)):] {
		s.names = append(s.names, names[slot.ID])
	}
}

// run compiles and runs the launch and puts the report together.
func (s *checkedRun) run(ctx context.Context, c SanitizeConfig) (*SanitizeReport, error) {
	program, err := checked.Build(ctx, s.source.Source)
	if err != nil {
		return nil, mlxc.NewError(s.kernel.name, s.kernel.locate(s.text, err))
	}
	result, err := program.Run(ctx, checked.Launch{
		Grid: s.launch.Grid, Threadgroup: s.launch.Threadgroup, Buffers: s.buffers,
		Schedules: c.Schedules, Seed: c.Seed, Timeout: c.Timeout,
		Located: func(line int) bool {
			_, ok := s.kernel.parsed.Locate(s.text, line-msl.HostLineShift)
			return ok
		},
	})
	if err != nil {
		return nil, mlxc.NewError(s.kernel.name, err)
	}
	s.nameThreadgroupVariables(result.Slots)
	r := &SanitizeReport{
		SameBits: result.Difference == nil && result.Schedules == c.Schedules, Schedules: result.Schedules,
		Duration: result.Duration,
		Traffic: Traffic{
			Barriers: result.Barriers, SIMDOperations: result.SIMDOperations,
			Segments: result.Segments, BankConflicts: result.BankConflicts,
			ThreadgroupMemory: result.ThreadgroupMemory, Compiler: program.Compiler, Flags: program.Flags,
		},
	}
	for i, slot := range result.Slots {
		r.Traffic.Buffers = append(r.Traffic.Buffers, BufferTraffic{
			Name: s.names[i], Threadgroup: slot.ID >= 0, Read: slot.Read, Written: slot.Written,
			UniqueRead: slot.UniqueRead, UniqueWritten: slot.UniqueWritten,
		})
	}
	for i, data := range result.Outputs {
		r.Outputs = append(r.Outputs, arrayFromBytes(data, s.launch.Outputs[i]))
	}
	if d := result.Difference; d != nil {
		r.Difference = fmt.Sprintf("%s[%d] %s", s.names[d.Slot], d.Offset/int64(max(result.Slots[d.Slot].Element, 1)), scheduleName(d.Schedule, c.Seed))
	}
	r.Findings = s.findings(result, c)
	return r, nil
}
