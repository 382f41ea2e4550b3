package sanitizer

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/checker"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// checkedRun is the state of a launch in the checker.
type checkedRun struct {
	kernel  *Kernel
	launch  Launch
	text    string // what MLX generated
	source  *translate.HostSource
	buffers []checker.Buffer // as the source takes them
	names   []string         // of the slots: buffers, then threadgroup variables
}

// checkedLaunch generates the text of a launch and collects its buffers.
func (k *Kernel) checkedLaunch(l Launch, inputs []Array) (*checkedRun, error) {
	text := k.text(l, inputs)
	source, err := translate.Host(text)
	if err != nil {
		return nil, k.loaded.Located(text, err)
	}
	s := &checkedRun{kernel: k, launch: l, text: text, source: source}
	for _, b := range source.Buffers {
		buffer, err := s.buffer(b.Name, inputs)
		if err != nil {
			return nil, err
		}
		s.buffers = append(s.buffers, buffer)
		s.names = append(s.names, k.nameOf(b.Name))
	}
	return s, nil
}

// nameOf is the kernel's own name of a buffer that MLX knows by a name.
func (k *Kernel) nameOf(name string) string {
	if i := slices.Index(k.loaded.Source.InputNames, name); i >= 0 {
		return k.loaded.Source.Inputs[i].Name
	}
	if i := slices.Index(k.loaded.Source.OutputNames, name); i >= 0 {
		return k.loaded.Source.Outputs[i].Name
	}
	return strings.TrimPrefix(name, "mlxg_") // of what MLX adds
}

// buffer returns the content of a buffer of the generated text: an input, an output, or the shape, strides or dimension
// count of an input.
func (s *checkedRun) buffer(name string, inputs []Array) (checker.Buffer, error) {
	k := s.kernel
	if i := slices.Index(k.loaded.Source.OutputNames, name); i >= 0 {
		b := s.outputBuffer(i)
		b.Padding = s.padding(k.loaded.Source.Outputs[i].Element, b)
		if slices.Contains(s.launch.Undefined, k.loaded.Source.Outputs[i].Name) {
			b.Padding = b.Size
		}
		return b, nil
	}
	if i := slices.Index(k.loaded.Source.InputNames, name); i >= 0 {
		d := inputs[i].DType
		return checker.Buffer{Data: inputs[i].bytes(), Size: len(inputs[i].Data), Cell: d.cell(), Element: d.Size()}, nil
	}
	for i, input := range k.loaded.Source.InputNames {
		shape := inputs[i].Shape
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
	return checker.Buffer{}, fmt.Errorf("the generated text has a buffer %s that this launch knows nothing of", name)
}

// constantBuffer is a buffer that a kernel only reads.
func constantBuffer[T any](values []T) checker.Buffer {
	var zero T
	data, size := sliceBytes(values), int(unsafe.Sizeof(zero))
	return checker.Buffer{Data: data, Size: len(data), Cell: size, Element: size}
}

// outputBuffer is the buffer of output i: it holds an array before the launch, or a value in
// every element, or nothing defined.
func (s *checkedRun) outputBuffer(i int) checker.Buffer {
	o, name := s.launch.Outputs[i], s.kernel.loaded.Source.Outputs[i].Name
	size := sizeOf(o.Shape)
	b := checker.Buffer{Size: size * o.DType.Size(), Cell: o.DType.cell(), Element: o.DType.Size(), Writable: true}
	switch {
	case s.launch.hasContent(name):
		b.Data = s.launch.InOut[name].bytes()
	case s.launch.InitValue != nil:
		b.Data = slices.Repeat(o.DType.Append(nil, float64(*s.launch.InitValue)), size)
	}
	return b
}

// vectorName matches Metal's vector types, without and with the word packed.
var vectorName = regexp.MustCompile(`^(packed_)?[a-z]+([234])$`)

// padding is how many bytes in a row an element of this type may leave unwritten: the fourth lane of
// a vector of three, and in a structure less than the alignment of Metal's widest type.
func (s *checkedRun) padding(element string, b checker.Buffer) int {
	plain := slices.ContainsFunc(s.kernel.loaded.Parsed.Template, func(t msl.TemplateParameter) bool { return t.Name == element })
	if dtypeOf(element) != Invalid || plain || strings.HasPrefix(element, "atomic") {
		return 0
	}
	switch m := vectorName.FindStringSubmatch(element); {
	case m == nil:
		return 15
	case m[1] == "" && m[2] == "3":
		return b.Cell
	}
	return 0
}

// sliceBytes is the memory of a slice, never nil.
func sliceBytes[T any](values []T) []byte {
	var zero T
	if len(values) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(zero)))
}

// bytes is the content, never nil: a buffer without data is undefined to the checker.
func (a Array) bytes() []byte {
	if a.Data == nil {
		return []byte{}
	}
	return a.Data
}

var threadgroupName = regexp.MustCompile(`\b(\w+) = mlxg::threadgroup_variable<\w+, (\d+)>`)

// nameThreadgroupVariables appends the names of the slots behind the buffers.
func (s *checkedRun) nameThreadgroupVariables(slots []checker.Slot) {
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
func (s *checkedRun) run(ctx context.Context, c Config) (*Report, error) {
	program, err := shader.Compile(s.text, s.source, func(source string) (*checker.Program, error) {
		return checker.Build(ctx, source)
	})
	if err != nil {
		return nil, s.kernel.loaded.LocatedCompileError(s.text, err)
	}
	result, err := program.Run(ctx, checker.Launch{
		Grid: s.launch.Grid, Threadgroup: s.launch.Threadgroup, Buffers: s.buffers,
		Schedules: c.Schedules, Seed: c.Seed, Timeout: c.Timeout,
		Located: func(line int) bool {
			_, ok := s.kernel.loaded.Parsed.Locate(s.text, line-translate.HostLineShift)
			return ok
		},
	})
	if err != nil {
		return nil, err
	}
	s.nameThreadgroupVariables(result.Slots)
	r := &Report{
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
		r.Outputs = append(r.Outputs, Array{DType: s.launch.Outputs[i].DType, Shape: s.launch.Outputs[i].Shape, Data: data})
	}
	r.Findings = s.findings(result, c)
	if d := result.Difference; d != nil {
		f := s.orderDependent(result, c)
		r.Difference = fmt.Sprintf("%s[%d] %s", f.Buffer, f.Element, f.Schedule)
		// After another finding it is only what follows from that.
		if len(r.Findings) == 0 {
			r.Findings = []Finding{f}
		}
	}
	return r, nil
}
