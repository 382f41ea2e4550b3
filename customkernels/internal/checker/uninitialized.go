package checker

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// findUninitialized adds a finding for each store of a value that depends on an uninitialized local variable.
//
// Local variables of the program begin with a pattern. A second program, whose variables begin with zero, gives the
// same outputs if none depends on them. That program is not instrumented, so it compiles quickly. If its outputs
// differ or it does not finish, an instrumented program with zeros runs. Its worker compares its outputs with those
// of the first run and reports the stores.
func (p *Program) findUninitialized(ctx context.Context, l Launch, r *Result) error {
	if r.Outputs == nil || slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Kind.undefinedOutputs() }) {
		return nil
	}
	l.Schedules = 1
	same, err := p.sameFromZero(ctx, l, r.Outputs)
	if same || err != nil {
		return err
	}
	l.Buffers = slices.Clone(l.Buffers)
	outputs := r.Outputs
	for i := range l.Buffers {
		if b := &l.Buffers[i]; b.Writable {
			b.expected, outputs = outputs[0], outputs[1:]
		}
	}
	zeroed, err := programFor(ctx, p.tools, p.text, zero)
	if err != nil {
		return err
	}
	second, err := zeroed.run(ctx, l)
	if err != nil {
		return err
	}
	for _, f := range second.Findings {
		if f.Kind == UninitializedRead {
			r.Findings = append(r.Findings, f)
		}
	}
	return nil
}

// undefinedOutputs reports whether a launch with a finding of kind k may have outputs that depend on more than its
// inputs and variables, so that comparing outputs says nothing about uninitialized variables.
func (k Kind) undefinedOutputs() bool {
	switch k {
	case Race, Fence, DivergentBarrier, ShuffleInactive, DivergentMatrix, OutOfBounds, UninitializedRead, Deadlock, Limit,
		Crash, Timeout:
		return true
	}
	return false
}

// sameFromZero reports whether a program without instrumentation, whose variables begin with zero, gives these
// outputs. It returns false if that program does not compile or finish.
func (p *Program) sameFromZero(ctx context.Context, l Launch, outputs [][]byte) (bool, error) {
	plain, err := programFor(ctx, p.tools, p.text, plainZero)
	var refused *toolchain.CompileError
	if errors.As(err, &refused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := plain.run(ctx, l)
	if err != nil {
		return false, err
	}
	return r.Outputs != nil && slices.EqualFunc(r.Outputs, outputs, bytes.Equal), nil
}
