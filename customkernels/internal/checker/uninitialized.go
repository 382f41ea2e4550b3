package checker

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// watchVariables runs a second program, which watches the threads' own variables and the call paths of barriers and
// SIMD-group functions, and adds its findings to r. The program is not optimized, so it compiles quickly.
//
// Its local variables begin with other values than those of the first program, in each run. The outputs are the same if
// none depends on a variable without a value. If they differ, an instrumented program with the same initial values
// finds the stores of the values that differ.
func (p *Program) watchVariables(ctx context.Context, l Launch, r *Result) error {
	ended := func(f Finding) bool { return f.Kind == Deadlock || f.Kind == Limit || f.Kind == Timeout }
	if slices.ContainsFunc(r.Findings, ended) {
		return nil
	}
	l.Schedules = 1
	watched := variant{zero: true, filled: true, watched: true}
	second, err := programFor(ctx, p.tools, p.text, watched)
	var refused *toolchain.CompileError
	if errors.As(err, &refused) { // fillVariables may misread an unusual declaration
		watched.filled = false
		second, err = programFor(ctx, p.tools, p.text, watched)
	}
	if err != nil {
		return err
	}
	l.watched, l.order, l.fills, l.Schedules = true, new(int), fills, len(fills)
	w, err := second.run(ctx, l)
	if err != nil {
		return err
	}
	// The first program may merge calls of SIMD-group functions that differ. If it finds divergent barriers, they are
	// real, but the watched program has their callers.
	barrier := func(f Finding) bool { return f.Kind == DivergentBarrier }
	barriers := slices.ContainsFunc(w.Findings, barrier)
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		return w.Outputs != nil && f.Kind.divergent() && (barriers || !barrier(f))
	})
	first := r.Findings
	for _, f := range w.Findings {
		if !slices.ContainsFunc(first, f.sameIndex) {
			r.Findings = append(r.Findings, f)
		}
	}
	undefined := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind.undefinedOutputs() })
	if r.Outputs == nil || undefined {
		return nil
	}
	fill := fills[0]
	switch {
	case w.Outputs == nil || !slices.EqualFunc(r.Outputs, w.Outputs, bytes.Equal):
	case w.Difference != nil:
		fill = fills[w.Difference.Schedule]
	default:
		return nil
	}
	return p.findUninitialized(ctx, l, r, variant{zero: true, filled: watched.filled}, fill)
}

// sameIndex reports whether g is the index of an array that the access of f follows from.
func (f Finding) sameIndex(g Finding) bool {
	return f.Kind == OutOfOwn && g.Kind == OutOfBounds && g.ArraySize > 0 && len(f.Path) > 0 && len(g.Path) > 0 &&
		f.Path[0].Line == g.Path[0].Line
}

// findUninitialized adds a finding for each store of a value that differs from the outputs of r if variables begin with
// a byte.
func (p *Program) findUninitialized(ctx context.Context, l Launch, r *Result, v variant, fill byte) error {
	filled, err := programFor(ctx, p.tools, p.text, v)
	if err != nil {
		return err
	}
	l.watched, l.fills = false, []byte{fill}
	stores, err := filled.storesOfOthers(ctx, l, r.Outputs)
	r.Findings = append(r.Findings, stores...)
	return err
}

// storesOfOthers runs the first schedule, and returns a finding of kind UninitializedRead for each store of a value
// that differs from the outputs.
func (p *Program) storesOfOthers(ctx context.Context, l Launch, outputs [][]byte) ([]Finding, error) {
	l.Schedules = 1
	l.Buffers = slices.Clone(l.Buffers)
	for i := range l.Buffers {
		if b := &l.Buffers[i]; b.Writable {
			b.expected, outputs = outputs[0], outputs[1:]
		}
	}
	r, err := p.run(ctx, l)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.Kind != UninitializedRead || !f.Write }), nil
}

// Store returns the last store to an element of an output of a launch whose outputs are known. The element has size
// bytes at offset at. The result is nil if no store is found.
func (p *Program) Store(ctx context.Context, l Launch, outputs [][]byte, output, at, size int) (*Finding, error) {
	outputs = slices.Clone(outputs)
	outputs[output] = slices.Clone(outputs[output])
	for i := range size {
		outputs[output][at+i] = ^outputs[output][at+i]
	}
	stores, err := p.storesOfOthers(ctx, l, outputs)
	if len(stores) == 0 {
		return nil, err
	}
	return &stores[0], err
}

// undefinedOutputs reports whether a launch with a finding of kind k may have outputs that depend on more than its
// inputs and variables, so that comparing outputs says nothing about uninitialized variables.
func (k Kind) undefinedOutputs() bool {
	switch k {
	case Race, Fence, DivergentBarrier, ShuffleInactive, DivergentMatrix, OutOfBounds, UninitializedRead, Deadlock, Limit,
		Crash, Timeout, OutOfOwn, WriteToInput, DivergentArgument:
		return true
	}
	return false
}
