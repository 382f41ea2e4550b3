package sanitizer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
)

// spaces is what the check of address spaces says of a text.
type spaces struct {
	findings  []Finding
	unchecked string // why it did not read all of it
}

// addressSpaces checks the text of a launch. MLX passes an input of 8 elements or more in device memory,
// where a complete shader may need the constant memory that its signature declares. What is wrong for
// that reason alone puts the launch outside of MLX.
func (k *Kernel) addressSpaces(ctx context.Context, l Launch, inputs []Array, text string) (found spaces, outside []string, err error) {
	found, err = k.checkSpaces(ctx, text)
	if err != nil || len(found.findings) == 0 {
		return found, nil, err
	}
	constant := slices.Clone(inputs)
	for i, b := range k.loaded.Source.Inputs {
		if b.Space == msl.Constant && !b.Reference && inputs[i].Size() >= shader.InDevice {
			constant[i].Shape = shader.SmallShape
			outside = append(outside, fmt.Sprintf("the kernel needs the input %s in constant memory, and MLX passes %d elements in device memory: declare it device, or give it fewer than %d",
				b.Name, inputs[i].Size(), shader.InDevice))
		}
	}
	if len(outside) == 0 {
		return found, nil, nil
	}
	asDeclared, err := k.checkSpaces(ctx, k.text(l, constant))
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

// spacesCache holds the findings about address spaces by text.
type spacesCache struct {
	mu     sync.Mutex
	byText map[string]spaces
}

// checkSpaces looks in the text of a launch for what Apple's compiler would refuse: confused address spaces
// and ambiguous calls.
func (k *Kernel) checkSpaces(ctx context.Context, text string) (spaces, error) {
	k.spaces.mu.Lock()
	known, ok := k.spaces.byText[text]
	k.spaces.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := addrspace.Check(ctx, text)
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
			Kind: kind, Severity: kind.Severity(), Kernel: k.loaded.Name, Site: k.siteOf(text, f.Line), Message: message,
		})
	}
	k.spaces.mu.Lock()
	defer k.spaces.mu.Unlock()
	if k.spaces.byText == nil {
		k.spaces.byText = map[string]spaces{}
	}
	k.spaces.byText[text] = result
	return result, nil
}

// unchecked says what kept the check of address spaces from reading a text.
func (k *Kernel) unchecked(text string, err error) string {
	var unread *addrspace.UncheckedError
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
	return k.loaded.Located(text, err).Error()
}

// siteOf is where a line of a generated text comes from, the kernel's name for a line that MLX
// wrote.
func (k *Kernel) siteOf(text string, line int) Site {
	if at, ok := k.loaded.Parsed.Locate(text, line); ok {
		return Site{File: at.File, Line: at.Line}
	}
	return k.site()
}
