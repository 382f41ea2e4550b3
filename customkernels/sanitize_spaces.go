package customkernels

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// spaces is what the check of address spaces says of a text.
type spaces struct {
	findings  []Finding
	unchecked string // why it did not read all of it
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
