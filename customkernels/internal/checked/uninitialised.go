package checked

import (
	"context"
	"encoding/binary"
	"slices"
)

// findUninitialised looks for outputs that were computed from variables that a thread has not
// set, and adds their stores to the findings.
//
// The variables of a program begin with a pattern that makes a number huge, or none at all. Where
// an output is such a number the launch is run once more, by a program whose variables begin with
// zero. What differs then depends on them; a kernel that makes such numbers of its inputs gives the
// same twice.
func (p *Program) findUninitialised(ctx context.Context, l Launch, r *Result) error {
	wrong := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind < Lockstep })
	if wrong || r.Outputs == nil {
		return nil
	}
	again, huge := l, false
	again.Schedules = 1
	again.Buffers = slices.Clone(l.Buffers)
	outputs := r.Outputs
	for i := range again.Buffers {
		if b := &again.Buffers[i]; b.Writable {
			b.expected, outputs = outputs[0], outputs[1:]
			huge = huge || anyHuge(b.expected, b.Cell)
		}
	}
	if !huge {
		return nil
	}
	zeroed, err := programFor(ctx, p.text, zero)
	if err != nil {
		return err
	}
	second, err := zeroed.run(ctx, again)
	if err != nil {
		return err
	}
	for _, f := range second.Findings {
		if f.Kind == UninitialisedRead {
			r.Findings = append(r.Findings, f)
		}
	}
	return nil
}

// anyHuge reports whether there is a number that may come of the pattern: one of an exponent near
// the greatest, or none, or the pattern that clang gives integers.
func anyHuge(data []byte, cell int) bool {
	for ; len(data) >= cell; data = data[cell:] {
		var huge bool
		switch cell {
		case 1:
			huge = data[0] == 0xfe || data[0] == 0xaa
		case 2:
			v := binary.NativeEndian.Uint16(data)
			huge = v>>10&0x1f == 0x1f || v == 0xaaaa
		case 4:
			v := binary.NativeEndian.Uint32(data)
			huge = v>>23&0xff > 127+96 || v>>16 == 0xaaaa
		case 8:
			v := binary.NativeEndian.Uint64(data)
			huge = v>>52&0x7ff > 1023+960 || v>>48 == 0xaaaa
		}
		if huge {
			return true
		}
	}
	return false
}
