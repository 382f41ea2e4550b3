package checker

import (
	"slices"
)

// The bits of wireFinding.Access.
const (
	isWrite = 1 << iota
	otherIsWrite
	isAtomic
	otherIsAtomic
)

// translate appends the worker's findings to r, with lines in place of program counters. It drops findings that the
// lines or the shader's text show to be false.
func (p *Program) translate(r *Result, findings []wireFinding, l Launch) error {
	if len(findings) == 0 {
		return nil
	}
	symbols, err := p.debugInformation()
	if err != nil {
		return err
	}
	for _, w := range findings {
		f := Finding{
			Kind: Kind(w.Kind), Slot: int(w.Slot), Offset: w.Offset, Size: int(w.Size),
			Write: w.Access&isWrite != 0, OtherWrite: w.Access&otherIsWrite != 0,
			Atomic: w.Access&isAtomic != 0, OtherAtomic: w.Access&otherIsAtomic != 0,
			Group: int(w.Group), Thread: int(w.Thread), OtherGroup: -1, OtherThread: -1,
			Schedule: int(w.Schedule), Detail: int(w.Detail), Address: w.Address, Count: int(w.Count), pc: w.PC,
		}
		if w.OtherThread != none {
			f.OtherGroup, f.OtherThread = int(w.OtherGroup), int(w.OtherThread)
		}
		switch f.Kind {
		case Crash, Timeout:
			// w.PC is the interrupted instruction. If it has no line of the shader, as in a function's prologue or in a
			// library, use the next line of the function, or else the last recorded access.
			f.Path, f.Column = symbols.locatedFrames(w.PC, l.Located)
			if len(f.Path) == 0 {
				f.Path, f.Column = symbols.frames(w.OtherPC - 1)
			}
			if f.Kind == Timeout && mergeSample(r, f) {
				continue
			}
		default:
			// These are return addresses. The byte before each belongs to the call.
			f.Path, f.Column = symbols.frames(w.PC - 1)
			f.OtherPath, f.OtherColumn = symbols.frames(w.OtherPC - 1)
			f.Path = append(f.Path, symbols.callers(w.Calls[:])...)
			f.OtherPath = append(f.OtherPath, symbols.callers(w.OtherCalls[:])...)
		}
		if f.Kind == UninitializedRead && f.Write {
			if l.fills != nil && slices.Equal(f.Path, f.OtherPath) {
				continue // the padding of a structure
			}
			f.OtherPath = nil
		}
		if f.Kind == OutOfOwn {
			f.Variable = symbols.variable(w.Address)
		}
		if f.Kind == OutOfBounds && f.Slot < 0 && f.Detail > 0 {
			f.Index, f.ArraySize = f.Offset, int64(f.Detail)
			if f.ArraySize == 1 && len(f.Path) > 0 && flexible(p.text, f.Path[0].Line) {
				continue
			}
		}
		if f.Kind == DivergentBarrier && !p.watched && f.OtherThread >= 0 && slices.Equal(f.Path, f.OtherPath) {
			continue // one barrier that the compiler duplicated
		}
		if f.Kind == DivergentReduction || f.Kind == BarrierAfterExit && !lastAccessAfter(f) {
			f.OtherPath = nil // only the last access of an ended thread
		}
		if f.Kind == BarrierAfterExit && (f.OtherPath != nil || !leavesEarly(p.text)) {
			f.Kind = DivergentBarrier
		}
		r.Findings = append(r.Findings, f)
	}
	all := slices.Clone(r.Findings)
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		return f.ArraySize > 0 &&
			slices.ContainsFunc(all, f.alsoAccess)
	})
	return nil
}

// alsoAccess reports whether g is the out-of-bounds access that follows from f, an index out of bounds. translate then
// drops f, because g also has the buffer and the element.
func (f Finding) alsoAccess(g Finding) bool {
	return g.Kind == OutOfBounds && g.Slot >= 0 && slices.Equal(f.Path, g.Path)
}

// mergeSample merges f, a sample of an endless loop, with the timeout that r already has. It returns false if r has
// none. It keeps the sample that comes first in the text, compared from the kernel inwards, which is the beginning of
// the loop or a line close to it.
func mergeSample(r *Result, f Finding) bool {
	i := slices.IndexFunc(r.Findings, func(g Finding) bool { return g.Kind == Timeout })
	if i < 0 {
		return false
	}
	lines := func(path []Frame) []int {
		var list []int
		for _, frame := range slices.Backward(path) {
			list = append(list, frame.Line)
		}
		return list
	}
	if old := r.Findings[i].Path; len(old) == 0 || len(f.Path) > 0 && slices.Compare(lines(f.Path), lines(old)) < 0 {
		r.Findings[i] = f
	}
	return true
}

// lastAccessAfter reports whether the last access of the other thread comes after the barrier in the text. Such a
// thread skipped the barrier; it did not return before it.
func lastAccessAfter(f Finding) bool {
	if len(f.Path) == 0 || len(f.OtherPath) == 0 {
		return false
	}
	barrier, last := f.Path[len(f.Path)-1], f.OtherPath[len(f.OtherPath)-1]
	return last.Line > barrier.Line
}
