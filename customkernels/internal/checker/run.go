package checker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A Buffer is an argument of a launch.
type Buffer struct {
	Data     []byte // the content before the launch; nil: not initialized
	Size     int    // in bytes
	Cell     int    // bytes that the shadow tells apart: the size of a number
	Element  int    // bytes that an index of the buffer counts
	Writable bool
	// Padding is the size of the longest stretch that may lie between the members of an element and
	// that no store need write, in bytes.
	Padding int

	expected []byte // what the kernel is to write, nil: that is not known
}

// A Launch is what a worker is asked to do.
type Launch struct {
	Grid, Threadgroup [3]int
	Buffers           []Buffer
	Schedules         int
	Seed              uint64
	Timeout           time.Duration
	// Located tells whether a line of the text belongs to the shader; the signature
	// around it does not.
	Located func(line int) bool
}

// A Finding is what a worker found, in its own terms.
type Finding struct {
	Kind                    Kind
	Slot                    int // a buffer, or behind them a threadgroup variable; -1: none
	Path, OtherPath         []Frame
	Offset                  int64 // in the slot, in bytes; of a Shift the count
	Size                    int
	Write, OtherWrite       bool
	Atomic, OtherAtomic     bool
	Group, Thread           int
	OtherGroup, OtherThread int // -1: none
	Schedule                int
	Index, ArraySize        int64 // of an index beyond an array whose type tells its size, else 0
	Detail                  int
	Address                 uint64
	Count                   int // how often; of an UnwrittenOutput the elements
}

// A Slot is a buffer or a threadgroup variable with its traffic.
type Slot struct {
	Size, Element                            int
	ID                                       int // of a threadgroup variable; -1: a buffer
	Read, Written, UniqueRead, UniqueWritten uint64
}

// A Result is what became of a launch.
type Result struct {
	Findings  []Finding
	Slots     []Slot
	Outputs   [][]byte // of the writable buffers after the first schedule; nil unless the launch finished
	Schedules int      // that finished
	// Difference is the place where a schedule gave other bits than the first.
	Difference                                        *Difference
	ThreadgroupMemory                                 int
	Barriers, SIMDOperations, Segments, BankConflicts uint64
	Duration                                          time.Duration // of all schedules, without the process's start
}

// A Difference is the first byte at which the outputs of two schedules differ.
type Difference struct {
	Slot, Schedule int
	Offset         int64
}

// grace is what a worker gets beyond its timeout to say where it was.
const grace = 5 * time.Second

// Run runs a launch in a process of its own.
func (p *Program) Run(ctx context.Context, l Launch) (*Result, error) {
	r, err := p.run(ctx, l)
	if err != nil {
		return nil, err
	}
	return r, p.findUninitialized(ctx, l, r)
}

func (p *Program) run(ctx context.Context, l Launch) (*Result, error) {
	dir, err := os.MkdirTemp("", "mlxgrad-checked-")
	if err != nil {
		return nil, fmt.Errorf("checker: %w", err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "launch"), filepath.Join(dir, "result")
	h := launchHeader{
		Schedules: uint32(l.Schedules), Seed: l.Seed, OnlySchedule: -1,
		TimeoutMS: uint32(max(l.Timeout.Milliseconds(), 1)),
	}
	for d := range 3 {
		h.Grid[d], h.Threadgroup[d] = uint32(l.Grid[d]), uint32(l.Threadgroup[d])
	}
	if err := writeLaunch(in, h, l.Buffers); err != nil {
		return nil, fmt.Errorf("checker: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, l.Timeout+grace)
	defer cancel()
	cmd := exec.CommandContext(limited, p.Path, in, out)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var messages bytes.Buffer
	cmd.Stderr = &messages
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("checker: %w", context.Cause(ctx))
	}
	if limited.Err() != nil {
		// It could not even be stopped by its own clock.
		return &Result{Findings: []Finding{{Kind: Timeout, Slot: -1, OtherGroup: -1, OtherThread: -1}}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checker: the worker failed: %w %s", err, bytes.TrimSpace(messages.Bytes()))
	}
	return p.result(out, l)
}

// result reads and translates what a worker wrote.
func (p *Program) result(path string, l Launch) (*Result, error) {
	h, slots, findings, outputs, err := readResult(path)
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
		r.Difference = &Difference{Slot: int(h.DifferingSlot), Schedule: int(h.DifferingSchedule), Offset: int64(h.DifferingOffset)}
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
				return nil, errors.New("checker: the worker's result is cut short")
			}
			r.Outputs = append(r.Outputs, outputs[:b.Size])
			outputs = outputs[b.Size:]
		}
	}
	if p.plain {
		return r, nil
	}
	return r, p.translate(r, findings, l.Located)
}
