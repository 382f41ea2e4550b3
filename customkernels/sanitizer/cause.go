package sanitizer

import (
	"cmp"
	"slices"
)

// causes returns one finding for each cause, errors first. It drops consequences of other findings. Findings of one
// cause become one, whose More holds the places of the others.
func causes(list []Finding) []Finding {
	list = slices.DeleteFunc(slices.Clone(list), func(f Finding) bool { return followsFrom(f, list) })
	slices.SortStableFunc(list, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	var kept []Finding
	var ranges []lineRange // where a barrier orders the accesses of each kept finding
	for _, f := range list {
		at := barrierRange(f)
		i := slices.IndexFunc(kept, func(g Finding) bool { return sameDefect(f, g) })
		for j := 0; i < 0 && j < len(kept); j++ {
			if f.orders() && kept[j].orders() && ranges[j].meets(at) {
				i = j
			}
		}
		if i < 0 {
			kept, ranges = append(kept, f), append(ranges, at)
			continue
		}
		ranges[i] = ranges[i].meet(at)
		for _, site := range []Site{f.Site.line(), f.Other.line()} {
			known := append([]Site{kept[i].Site, kept[i].Other}, kept[i].More...)
			if site.Line > 0 && !slices.ContainsFunc(known, site.sameLine) {
				kept[i].More = append(kept[i].More, site)
			}
		}
	}
	return kept
}

// conflicts reports whether f is an error about two accesses without order.
func (f Finding) conflicts() bool { return f.Kind == FindingRace || f.Kind == FindingFence }

// orders reports whether f is about two accesses of one threadgroup without order.
func (f Finding) orders() bool {
	switch f.Kind {
	case FindingRace, FindingFence, FindingLockstep, FindingWriteAfterRead, FindingSameValueWrite:
		return f.Threads[0].Group == f.Threads[1].Group
	}
	return false
}

// lineRange is the lines between two accesses, in which one barrier orders both.
type lineRange struct {
	file      string
	low, high int
}

func barrierRange(f Finding) lineRange {
	if f.Site.File != f.Other.File {
		return lineRange{}
	}
	return lineRange{f.Site.File, min(f.Site.Line, f.Other.Line), max(f.Site.Line, f.Other.Line)}
}

func (r lineRange) meet(o lineRange) lineRange {
	if !r.meets(o) {
		return r
	}
	return lineRange{r.file, max(r.low, o.low), min(r.high, o.high)}
}

func (r lineRange) meets(o lineRange) bool {
	return r.file == o.file && r.file != "" && max(r.low, o.low) < min(r.high, o.high)
}

// sameDefect reports whether two findings of one kind have the same cause although their places differ.
func sameDefect(f, g Finding) bool {
	if f.Kind != g.Kind {
		return false
	}
	switch f.Kind {
	case FindingOutOfBounds: // one wrong index may select elements of several buffers
		return f.Buffer != "" && f.Buffer == g.Buffer || f.Threads[0] == g.Threads[0]
	case FindingRace, FindingFence, FindingLockstep, FindingSameValueWrite, FindingWriteAfterRead, FindingMisaligned,
		FindingNeverRead, FindingDroppedElement, FindingUninitializedRead, FindingTextureBounds, FindingWriteToInput:
		return f.Buffer != "" && f.Buffer == g.Buffer
	case FindingDivergentBarrier, FindingBarrierAfterExit, FindingDivergentReduction, FindingDivergentMatrix,
		FindingShuffleInactive, FindingDivergentArgument:
		return true
	case FindingOverflow, FindingShift: // in several instances of a template
		return f.Site.sameLine(g.Site)
	}
	return false
}

func wrongIndex(f Finding) bool { return f.Kind == FindingOutOfBounds || f.Kind == FindingOverflow }

// followsFrom reports whether f is a consequence of another finding of the list.
func followsFrom(f Finding, list []Finding) bool {
	follows := func(same func(o Finding) bool) bool {
		return slices.ContainsFunc(list, func(o Finding) bool { return o.Kind != f.Kind && same(o) })
	}
	if f.orders() && follows(func(o Finding) bool { return o.Kind == FindingDivergentBarrier }) {
		return true // the threads that skipped the barrier
	}
	if f.conflicts() && f.Site.line() == f.Other.line() && follows(wrongIndex) {
		return true // the store of two threads whose index is wrong
	}
	switch f.Kind {
	case FindingLockstep, FindingSameValueWrite, FindingWriteAfterRead:
		// The other finding is the general case: threads of other simdgroups, or other values.
		return follows(func(o Finding) bool { return o.conflicts() && o.Buffer == f.Buffer })
	case FindingShuffleInactive: // the lane that the argument selects
		return follows(func(o Finding) bool { return o.Kind == FindingDivergentArgument && o.Site.sameLine(f.Site) })
	case FindingCrash: // the access changed the stack or a pointer
		return follows(func(o Finding) bool { return o.Kind == FindingOutOfBounds && o.Threads[0] == f.Threads[0] })
	case FindingOutOfBounds: // of an index that wrapped around
		return follows(func(o Finding) bool { return o.Kind == FindingOverflow })
	case FindingDivergentReduction: // lanes have ended
		return follows(func(o Finding) bool { return o.Kind == FindingBarrierAfterExit })
	case FindingUnwrittenOutput: // the store went to another address, or threads did not reach it
		return follows(func(o Finding) bool {
			switch o.Kind {
			case FindingOutOfBounds, FindingDivergentBarrier, FindingDeadlock, FindingCrash, FindingTimeout, FindingOverflow:
				return true
			}
			return o.conflicts() && o.Buffer == f.Buffer
		})
	case FindingUninitializedRead: // threads read before the write, or the write went to another address
		return follows(func(o Finding) bool {
			return (o.conflicts() || o.Kind == FindingLockstep || o.Kind == FindingOutOfBounds) && o.Buffer == f.Buffer
		})
	case FindingNeverRead, FindingDroppedElement:
		return follows(func(o Finding) bool {
			return o.Buffer == f.Buffer && (o.Severity == SeverityError || o.Kind == FindingLockstep) &&
				(o.Kind != FindingDroppedElement || o.Site.sameLine(f.Site))
		})
	}
	return false
}

// explainWrongValues moves the places of unread threadgroup values to a finding about wrong values, which they explain.
func explainWrongValues(wrong, list []Finding) []Finding {
	if len(wrong) == 0 {
		return list
	}
	list = slices.DeleteFunc(list, func(f Finding) bool {
		if f.Kind != FindingNeverRead {
			return false
		}
		wrong[0].More = append(append(wrong[0].More, f.Site), f.More...)
		return true
	})
	return append(wrong, list...)
}
