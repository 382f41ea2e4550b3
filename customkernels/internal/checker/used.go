package checker

import (
	"context"
	"slices"
)

// everyRead is every_read of worker/protocol.h.
const everyRead = ^uint64(0)

// readFills are the bytes that an uninitialized read gives, one per run. The last makes numbers near 12, which conversions
// to integers keep; all others convert to 0 on some processors.
var readFills = append(slices.Clone(fills), 0x41)

// mostReads is the number of places whose uninitialized reads are judged one by one. Beyond it, all of them count as
// used if one is.
const mostReads = 16

// dropUnusedReads drops the findings of uninitialized reads whose values the kernel discards: no output depends on
// them, and no address or branch that leads to other accesses. A launch that does not finish keeps its findings. So does
// one whose outputs depend on the order of threads: the read shows a thread that came before the write.
func (p *Program) dropUnusedReads(ctx context.Context, l Launch, r *Result) error {
	if r.Outputs == nil || r.Difference != nil {
		return nil
	}
	reads := map[int][]uint64{} // places by schedule
	for _, f := range r.Findings {
		if f.Kind == UninitializedRead && !slices.Contains(reads[f.Schedule], f.pc) {
			reads[f.Schedule] = append(reads[f.Schedule], f.pc)
		}
	}
	for schedule, places := range reads {
		unused, err := p.unusedReads(ctx, l, schedule, places)
		if err != nil {
			return err
		}
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
			return f.Kind == UninitializedRead && f.Schedule == schedule && slices.Contains(unused, f.pc)
		})
	}
	return nil
}

// unusedReads returns the places whose uninitialized reads in a schedule give values that the kernel discards.
func (p *Program) unusedReads(ctx context.Context, l Launch, schedule int, places []uint64) (unused []uint64, err error) {
	used, err := p.usesRead(ctx, l, schedule, everyRead)
	switch {
	case err != nil:
		return nil, err
	case !used:
		return places, nil
	case len(places) > mostReads:
		return nil, nil
	}
	for _, pc := range places {
		if used, err = p.usesRead(ctx, l, schedule, pc); err != nil {
			return nil, err
		}
		if !used {
			unused = append(unused, pc)
		}
	}
	if len(unused) == len(places) {
		return nil, nil // only several reads together matter
	}
	return unused, nil
}

// usesRead reports whether the outputs or the accesses of a launch depend on the uninitialized reads at pc.
func (p *Program) usesRead(ctx context.Context, l Launch, schedule int, pc uint64) (bool, error) {
	l.order, l.filledRead, l.fills, l.Schedules = &schedule, pc, readFills, len(readFills)
	r, err := p.run(ctx, l)
	if err != nil {
		return false, err
	}
	return r.Outputs == nil || r.Difference != nil, nil
}
