package checker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// These types have the layout of worker/protocol.h.

const (
	magic   = 0x4b43474d
	version = 7
)

type launchHeader struct {
	Magic, Version     uint32
	Buffers, Schedules uint32
	Grid, Threadgroup  [3]uint32
	Seed               uint64
	TimeoutMS          uint32
	OnlySchedule       int32
	Watched, Fills     uint32
	FilledRead         uint64
}

type bufferHeader struct {
	Size, Offset          uint64
	Expected              uint64
	Cell, Element         uint32
	Writable, Initialized uint32
	Padding               uint64
	Extent                [4]uint32
	Component, Channels   uint32
	Pointers              uint64
	PointerCount          uint64
}

type pointerField struct {
	Offset     uint64
	To, Unused uint32
}

type resultHeader struct {
	Magic, Version                                                 uint32
	Status, Schedules                                              uint32
	Slots, Findings                                                uint32
	Differs, DifferingSlot, DifferingSchedule, ThreadgroupMemory   uint32
	DifferingOffset                                                uint64
	Barriers, SIMDOperations, Segments, BankConflicts, Nanoseconds uint64
	Message                                                        [128]byte
}

type slotResult struct {
	Size                                     uint64
	Read, Written, UniqueRead, UniqueWritten uint64
	Element                                  uint32
	ID                                       int32
}

type wireFinding struct {
	Kind                    uint32
	Slot                    int32
	PC, OtherPC             uint64
	Offset                  int64
	Size, Access            uint32
	Group, Thread           uint32
	OtherGroup, OtherThread uint32
	Schedule, Detail        uint32
	Address, Count          uint64
	Calls, OtherCalls       [16]uint32
}

const (
	statusFinished = iota
	statusCrashed
	statusTimedOut
	statusRefused
)

// none is the number of no thread.
const none = 1<<32 - 1

// writeLaunch writes the worker's input.
func writeLaunch(f io.WriterAt, h launchHeader, buffers []Buffer) error {
	const align = 4096
	var head bytes.Buffer
	at := uint64(binary.Size(h) + len(buffers)*binary.Size(bufferHeader{}))
	h.Magic, h.Version, h.Buffers = magic, version, uint32(len(buffers))
	if err := binary.Write(&head, binary.NativeEndian, h); err != nil {
		return err
	}
	type part struct {
		content []byte
		offset  uint64
	}
	var parts []part
	place := func(content []byte) uint64 {
		at = (at + align - 1) &^ (align - 1)
		parts = append(parts, part{content, at})
		at += uint64(len(content))
		return parts[len(parts)-1].offset
	}
	for _, b := range buffers {
		bh := bufferHeader{
			Size: uint64(b.Size), Offset: place(b.Data), Cell: uint32(b.Cell), Element: uint32(b.Element),
			Writable: flag(b.Writable), Initialized: flag(b.Data != nil), Padding: uint64(b.Padding),
		}
		if t := b.Texture; t != nil {
			bh.Component, bh.Channels = uint32(t.Component), uint32(t.Channels)
			for i, n := range t.Extent {
				bh.Extent[i] = uint32(n)
			}
		}
		if len(b.Pointers) > 0 {
			var table bytes.Buffer
			for _, p := range b.Pointers {
				if err := binary.Write(&table, binary.NativeEndian, pointerField{Offset: uint64(p.Offset), To: uint32(p.To)}); err != nil {
					return err
				}
			}
			bh.Pointers, bh.PointerCount = place(table.Bytes()), uint64(len(b.Pointers))
		}
		if b.expected != nil {
			bh.Expected = place(b.expected)
		}
		if err := binary.Write(&head, binary.NativeEndian, bh); err != nil {
			return err
		}
	}
	_, err := f.WriteAt(head.Bytes(), 0)
	for _, p := range parts {
		if err == nil && len(p.content) > 0 {
			_, err = f.WriteAt(p.content, int64(p.offset))
		}
	}
	return err
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// readResult reads the worker's result. outputs holds the content of all writable buffers, one after the other. A
// shader may have written any bytes into the worker's memory, so only what cannot fail later is accepted.
func readResult(r io.Reader, buffers []Buffer) (
	h resultHeader, slots []slotResult, findings []wireFinding, outputs []byte, err error,
) {
	fail := func(err error) (resultHeader, []slotResult, []wireFinding, []byte, error) {
		return h, nil, nil, nil, err
	}
	if err = binary.Read(r, binary.NativeEndian, &h); err != nil {
		return fail(err)
	}
	const mostSlots, mostFindings = 127, 512
	if h.Magic != magic || h.Version != version || h.Slots > mostSlots || h.Findings > mostFindings ||
		h.Differs != 0 && h.DifferingSlot >= uint32(len(buffers)) {
		return fail(errDamaged)
	}
	slots, findings = make([]slotResult, h.Slots), make([]wireFinding, h.Findings)
	for _, part := range []any{slots, findings} {
		if err = binary.Read(r, binary.NativeEndian, part); err != nil {
			return fail(err)
		}
	}
	for _, f := range findings {
		if f.Slot < -1 || f.Slot >= int32(h.Slots) || f.Kind >= uint32(numKinds) {
			return fail(errDamaged)
		}
	}
	size := 0
	for _, b := range buffers {
		if b.Writable {
			size += b.Size
		}
	}
	outputs, err = io.ReadAll(io.LimitReader(r, int64(size)+1))
	if len(outputs) > size {
		return fail(errDamaged)
	}
	return h, slots, findings, outputs, err
}

var errDamaged = errors.New("the file is not a result of this version of the worker")
