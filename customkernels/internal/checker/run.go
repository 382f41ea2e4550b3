package checker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/confine"
)

// Buffer is a buffer argument of a launch.
type Buffer struct {
	Data     []byte // content before the launch; nil if uninitialized
	Size     int    // in bytes
	Cell     int    // bytes per shadow cell: the size of a scalar
	Element  int    // bytes per element, as the kernel indexes the buffer
	Writable bool
	// Padding is the size in bytes of the longest padding within an element. An unwritten range of an output of at most
	// this size is no finding.
	Padding int
	// Texture is set if the buffer holds the pixels of a texture. Element is then the size of a pixel.
	Texture *Texture
	// Pointers are the places in the buffer that hold addresses of other buffers or textures.
	Pointers []Pointer

	expected []byte // expected output; nil if unknown
}

// Pointer is a place in a buffer that holds the address of another buffer or a texture.
type Pointer struct {
	Offset int // in bytes
	To     int // index of the buffer
}

// Launch holds the arguments of [Program.Run].
type Launch struct {
	Grid, Threadgroup [3]int        // threads; all must be positive, and a threadgroup has at most 1024
	Buffers           []Buffer      // in the order of the kernel's parameters
	Schedules         int           // orders of threads: ascending, descending, then random
	Seed              uint64        // of the random orders
	Timeout           time.Duration // for all schedules together
	// Located reports whether a line of the text belongs to the shader, and not to the signature that MLX generated. If
	// it is nil, every line does.
	Located func(line int) bool

	watched    bool   // for a watched program
	fills      []byte // initial bytes of filled variables, or of filled reads, one for each schedule; at most 4
	filledRead uint64 // pc of the uninitialized reads that give fills; 0 for none, everyRead for all
	order      *int   // the order of all schedules; nil if each has its own
}

// Finding is a finding in terms of the translated text.
type Finding struct {
	Kind                    Kind
	Slot                    int // index of a buffer, then of threadgroup variables; -1 for none
	Path, OtherPath         []Frame
	Column, OtherColumn     int   // of the innermost frames; 0 if unknown
	Offset                  int64 // bytes from the start of the slot; the count of a Shift
	Size                    int
	Write, OtherWrite       bool
	Atomic, OtherAtomic     bool
	Arms                    bool // a Race of two lanes in the two arms of a branch
	Group, Thread           int
	OtherGroup, OtherThread int // -1 for none
	Schedule                int
	Index, ArraySize        int64  // for an index out of the bounds of an array type or vector; otherwise 0
	Variable                string // name of a thread's own variable, for OutOfOwn; it may be empty
	Detail                  int    // depends on the kind, as in worker/protocol.h
	Address                 uint64
	Count                   int // occurrences; the elements of an UnwrittenOutput

	pc uint64
}

// Slot is a buffer or threadgroup variable with its traffic in bytes.
type Slot struct {
	Size, Element                            int
	ID                                       int // number of a threadgroup variable; -1 for a buffer
	Read, Written, UniqueRead, UniqueWritten uint64
}

// Result is the result of a launch.
type Result struct {
	Findings  []Finding
	Slots     []Slot
	Outputs   [][]byte // writable buffers after the first schedule; nil unless the launch finished
	Schedules int      // finished schedules
	// Difference is nil if the outputs of all finished schedules have the same bits.
	Difference                                        *Difference
	ThreadgroupMemory                                 int
	Barriers, SIMDOperations, Segments, BankConflicts uint64
	Duration                                          time.Duration // all schedules, without the start of the process
}

// Difference is the first byte at which the outputs of two schedules differ.
type Difference struct {
	Slot, Schedule int
	Offset         int64
}

// grace is the additional time after the timeout in which the worker reports its position.
const grace = 5 * time.Second

// Run runs a launch in a separate process, and blocks until the process ends. Goroutines may call it concurrently. A
// crash or a timeout of the shader is a finding and not an error. An error means that the worker did not run, that it
// rejected the launch, that a variant of the program did not compile, or that ctx ended. The result is nil then.
func (p *Program) Run(ctx context.Context, l Launch) (*Result, error) {
	r, err := p.run(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := p.dropUnusedReads(ctx, l, r); err != nil {
		return nil, err
	}
	if err := p.addRacesOfArms(ctx, l, r); err != nil {
		return nil, err
	}
	if err := p.watchVariables(ctx, l, r); err != nil {
		return nil, err
	}
	return r, nil
}

// run is Run without further runs and programs.
func (p *Program) run(ctx context.Context, l Launch) (*Result, error) {
	launch, err := temporary()
	if err != nil {
		return nil, fmt.Errorf("checker: %w", err)
	}
	defer launch.Close()
	result, err := temporary()
	if err != nil {
		return nil, fmt.Errorf("checker: %w", err)
	}
	defer result.Close()
	h := launchHeader{
		Schedules: uint32(l.Schedules), Seed: l.Seed, OnlySchedule: -1,
		TimeoutMS: uint32(max(l.Timeout.Milliseconds(), 1)), Watched: flag(l.watched), FilledRead: l.filledRead,
	}
	if l.order != nil {
		h.OnlySchedule = int32(*l.order)
	}
	for i, fill := range l.fills {
		h.Fills |= uint32(fill) << (8 * i)
	}
	for d := range 3 {
		h.Grid[d], h.Threadgroup[d] = uint32(l.Grid[d]), uint32(l.Threadgroup[d])
	}
	if err := writeLaunch(launch, h, l.Buffers); err != nil {
		return nil, fmt.Errorf("checker: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, l.Timeout+grace)
	defer cancel()
	worker := confine.Kernel(p.Path, launch, result)
	var messages confine.Output
	worker.Stderr = &messages
	err = worker.Run(limited)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("checker: %w", context.Cause(ctx))
	}
	if limited.Err() != nil {
		// The worker's own timer did not stop it.
		return &Result{Findings: []Finding{{Kind: Timeout, Slot: -1, OtherGroup: -1, OtherThread: -1}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checker: the worker failed: %w %s", err, strings.TrimSpace(messages.String()))
	}
	if _, err := result.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("checker: %w", err)
	}
	return p.result(result, l)
}

// temporary returns an open file without a name.
func temporary() (*os.File, error) {
	f, err := os.CreateTemp("", "mlxgrad-checked-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// result reads the worker's result and maps its findings to lines.
func (p *Program) result(from io.Reader, l Launch) (*Result, error) {
	h, slots, findings, outputs, err := readResult(from, l.Buffers)
	if err != nil {
		return nil, fmt.Errorf("checker: the worker's result: %w", err)
	}
	if h.Status == statusRefused && len(findings) == 0 {
		return nil, errors.New("checker: " + string(bytes.TrimRight(h.Message[:], "\x00")))
	}
	r := &Result{
		Schedules: int(h.Schedules), ThreadgroupMemory: int(h.ThreadgroupMemory),
		Barriers: h.Barriers, SIMDOperations: h.SIMDOperations, Segments: h.Segments,
		BankConflicts: h.BankConflicts, Duration: time.Duration(h.Nanoseconds),
	}
	if h.Differs != 0 {
		r.Difference = &Difference{
			Slot: int(h.DifferingSlot), Schedule: int(h.DifferingSchedule),
			Offset: int64(h.DifferingOffset),
		}
	}
	for _, s := range slots {
		r.Slots = append(r.Slots, Slot{
			Size: int(s.Size), Element: int(s.Element), ID: int(s.ID),
			Read: s.Read, Written: s.Written, UniqueRead: s.UniqueRead, UniqueWritten: s.UniqueWritten,
		})
	}
	if len(outputs) > 0 || h.Status == statusFinished {
		for _, b := range l.Buffers {
			if !b.Writable {
				continue
			}
			if b.Size > len(outputs) {
				return nil, errors.New("checker: the worker's result is truncated")
			}
			r.Outputs = append(r.Outputs, outputs[:b.Size])
			outputs = outputs[b.Size:]
		}
	}
	if p.watched {
		findings = slices.DeleteFunc(findings, func(f wireFinding) bool {
			return !Kind(f.Kind).inWatched()
		})
	}
	return r, p.translate(r, findings, l)
}
