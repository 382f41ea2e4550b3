package customkernels

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// spaces is what the check of address spaces says of a text.
type spaces struct {
	findings  []Finding
	unchecked string // why it did not read all of it
}

// addressSpaces checks the text of a launch. MLX passes an input of 8 elements or more in device memory,
// where a complete shader may need the constant memory that its signature declares. What is wrong for
// that reason alone puts the launch outside of MLX.
func (k *Kernel) addressSpaces(ctx context.Context, l Launch, inputs []*mlxc.Array, text string) (found spaces, outside []string, err error) {
	found, err = k.checkSpaces(ctx, string(k.signature(nil, l, inputs)), text)
	if err != nil || len(found.findings) == 0 {
		return found, nil, err
	}
	constant := slices.Clone(inputs)
	for i, b := range k.source.Inputs {
		if b.Space == msl.Constant && !b.Reference && inputs[i].Size() >= inDevice {
			constant[i] = mlxc.Zeros(inputs[i].DType(), smallShape...)
			defer constant[i].Free()
			outside = append(outside, fmt.Sprintf("the kernel needs the input %s in constant memory, and MLX passes %d elements in device memory: declare it device, or give it fewer than %d",
				b.Name, inputs[i].Size(), inDevice))
		}
	}
	if len(outside) == 0 {
		return found, nil, nil
	}
	if text, err = k.generate(l, constant); err != nil {
		return found, nil, err
	}
	asDeclared, err := k.checkSpaces(ctx, string(k.signature(nil, l, constant)), text)
	if err != nil {
		return found, nil, err
	}
	declared := map[string]bool{}
	for _, f := range asDeclared.findings {
		declared[withoutSpace(f)] = true
	}
	if !slices.ContainsFunc(found.findings, func(f Finding) bool { return !declared[withoutSpace(f)] }) {
		return found, nil, nil
	}
	return asDeclared, outside, nil
}

var spaceOfInput = regexp.MustCompile(`\b(?:device|constant|const)\b *`)

// withoutSpace is a finding's place and message, without the words in which inputs in device memory and
// in constant memory differ.
func withoutSpace(f Finding) string {
	return f.Site.String() + ": " + spaceOfInput.ReplaceAllString(f.Message, "")
}

// checkSpaces looks for what Apple's compiler would refuse about address spaces, and of ambiguous
// calls, in the text of a launch with this signature.
func (k *Kernel) checkSpaces(ctx context.Context, signature, text string) (spaces, error) {
	k.mu.Lock()
	known, ok := k.spaces[signature]
	k.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := msl.CheckAddressSpaces(ctx, text)
	if ctx.Err() != nil {
		return spaces{}, ctx.Err()
	}
	result := spaces{unchecked: k.unchecked(text, err)}
	for _, f := range found {
		kind, message := FindingAddressSpace, "Apple's compiler refuses this: "+f.Message
		if f.Ambiguous {
			kind, message = FindingAmbiguous, message+": Metal has the function for arguments of one type, so convert them to one"
		}
		result.findings = append(result.findings, Finding{
			Kind: kind, Severity: kind.Severity(), Kernel: k.name, Site: k.siteOf(text, f.Line), Message: message,
		})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spaces[signature] = result
	return result, nil
}

// unchecked says what kept the check of address spaces from reading a text.
func (k *Kernel) unchecked(text string, err error) string {
	var unread *msl.UncheckedError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &unread) && len(unread.Diagnostics) > 0:
		first, more := unread.Diagnostics[0], ""
		if n := len(unread.Diagnostics) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return fmt.Sprintf("clang could not read %v: %s%s", k.siteOf(text, first.Line), first.Message, more)
	}
	return k.located(text, err).Error()
}

// siteOf is where a line of a generated text comes from, the kernel's name for a line that MLX
// wrote.
func (k *Kernel) siteOf(text string, line int) Site {
	if at, ok := k.parsed.Locate(text, line); ok {
		return Site{File: at.File, Line: at.Line}
	}
	return k.site()
}
