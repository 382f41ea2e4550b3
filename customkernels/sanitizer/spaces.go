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

// addressSpaceResult is the result of the address-space check of a text.
type addressSpaceResult struct {
	findings []Finding
	skipped  string // why the text was not fully checked, or empty
}

// addressSpaces checks the address spaces in the text of a launch. MLX passes inputs of 8 elements or more in device
// memory, but a shader may need them in constant memory, as it declares. So addressSpaces also checks the text with
// these inputs in constant memory. If that removes a finding, MLX does not support the launch: found holds the
// remaining findings, and unsupported the reasons.
func (k *Kernel) addressSpaces(ctx context.Context, l Launch, inputs []Array, text string) (
	found addressSpaceResult, unsupported []string, err error,
) {
	found, err = k.checkSpaces(ctx, text)
	if err != nil || len(found.findings) == 0 || k.loaded.Native != nil {
		return found, nil, err
	}
	constant := slices.Clone(inputs)
	for i, b := range k.loaded.Source.Inputs {
		if b.Space == msl.Constant && !b.Reference && inputs[i].Size() >= shader.InDevice {
			constant[i].Shape = shader.SmallShape
			unsupported = append(unsupported, fmt.Sprintf("the kernel needs the input %s in constant memory, and MLX "+
				"passes %d elements in device memory: declare it device, or give it fewer than %d",
				b.Name, inputs[i].Size(), shader.InDevice))
		}
	}
	if len(unsupported) == 0 {
		return found, nil, nil
	}
	text, err = k.text(l, constant)
	if err != nil {
		return found, nil, err
	}
	asDeclared, err := k.checkSpaces(ctx, text)
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
	return asDeclared, unsupported, nil
}

var spaceOfInput = regexp.MustCompile(`\b(?:device|constant|const)\b *`)

// withoutSpace returns the place and message of a finding without words that depend on whether inputs are in device or
// constant memory.
func withoutSpace(f Finding) string {
	return f.Site.String() + ": " + spaceOfInput.ReplaceAllString(f.Message, "")
}

// spacesCache caches results by text.
type spacesCache struct {
	mu     sync.Mutex
	byText map[string]addressSpaceResult
}

// checkSpaces returns errors that Apple's compiler would report: mismatched address spaces and ambiguous calls.
func (k *Kernel) checkSpaces(ctx context.Context, text string) (addressSpaceResult, error) {
	k.spaces.mu.Lock()
	known, ok := k.spaces.byText[text]
	k.spaces.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := addrspace.Check(ctx, text)
	if ctx.Err() != nil {
		return addressSpaceResult{}, ctx.Err()
	}
	result := addressSpaceResult{skipped: k.skipReason(text, err)}
	for _, f := range found {
		kind, message := FindingAddressSpace, "Apple's compiler refuses this: "+f.Message
		if f.Ambiguous {
			kind, message = FindingAmbiguous, message+": Metal's overloads take arguments of one type, so "+
				"convert them to one type"
		}
		result.findings = append(result.findings, Finding{
			Kind: kind, Severity: kind.Severity(), Kernel: k.loaded.Name, Site: k.siteOf(text, f.Line, f.Column),
			Message: message,
		})
	}
	k.spaces.mu.Lock()
	defer k.spaces.mu.Unlock()
	if k.spaces.byText == nil {
		k.spaces.byText = map[string]addressSpaceResult{}
	}
	k.spaces.byText[text] = result
	return result, nil
}

// skipReason returns why a text was not fully checked.
func (k *Kernel) skipReason(text string, err error) string {
	var unread *addrspace.UncheckedError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &unread) && len(unread.Diagnostics) > 0:
		first, more := unread.Diagnostics[0], ""
		if n := len(unread.Diagnostics) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return fmt.Sprintf("clang could not read %v: %s%s", k.siteOf(text, first.Line, first.Column), first.Message, more)
	}
	return k.loaded.MapParseError(text, err).Error()
}

// siteOf returns the place of a line of the generated text, or the kernel's name for a line that MLX added.
func (k *Kernel) siteOf(text string, line, column int) Site {
	if at, ok := k.loaded.Locate(text, line, column); ok {
		return Site{File: at.File, Line: at.Line, Column: at.Column}
	}
	return k.site()
}
