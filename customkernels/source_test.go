package customkernels

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/executor"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// signatures runs f for every kernel of this project, every floating-point dtype, and both size classes of every input.
func signatures(t *testing.T, f func(t *testing.T, k *Kernel, l Launch, inputs arrays)) {
	files, err := fs.Glob(Shaders(), "*.metal")
	require.NoError(t, err)
	for _, file := range files {
		lib, err := Load(Shaders(), file)
		require.NoError(t, err)
		for _, name := range lib.Names() {
			k, err := lib.Kernel(name)
			require.NoError(t, err)
			for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
				// An input's size class affects only its own declaration, so no, one or all inputs are small.
				classes, all := []int{0}, 0
				for i, b := range k.source.Inputs {
					if !b.Reference {
						classes = append(classes, 1<<i)
						all |= 1 << i
					}
				}
				for _, small := range append(classes, all) {
					l, inputs := signature(k, d, small)
					t.Run(name+"/"+d.String(), func(t *testing.T) { f(t, k, l, inputs) })
				}
			}
		}
	}
}

// signature returns a launch of the kernel with its inputs. If bit i of small is set, input i has fewer than eight
// elements, unless it is a reference, which has no axes.
func signature(k *Kernel, d mlxc.DType, small int) (l Launch, inputs arrays) {
	number := 4
	hasLanes := func(p msl.TemplateParameter) bool { return p.Name == "LANES" }
	if slices.ContainsFunc(k.parsed.Template, hasLanes) {
		number = 16 // a tile and half a tile must be multiples of a fragment
	}
	for _, p := range k.parsed.Template {
		switch p.Kind {
		case msl.TypeParameter:
			l.Template = append(l.Template, mlxc.TemplateArg{Name: p.Name, Value: d})
		case msl.BoolParameter:
			l.Template = append(l.Template, mlxc.TemplateArg{Name: p.Name, Value: true})
		default:
			value := number
			if hasLanes(p) {
				value = 32
			}
			l.Template = append(l.Template, mlxc.TemplateArg{Name: p.Name, Value: value})
		}
	}
	dtypeOf := func(b *msl.Buffer) mlxc.DType {
		if slices.ContainsFunc(k.parsed.Template, func(p msl.TemplateParameter) bool { return p.Name == b.Element }) {
			return d
		}
		name := strings.TrimSuffix(msl.DType(b.Element), "_t")
		if name == "float" {
			name = "float32"
		}
		i := slices.IndexFunc(sanitizer.DTypes(), func(d sanitizer.DType) bool { return d.String() == name })
		return mlxc.DType(sanitizer.DTypes()[i])
	}
	for i, b := range k.source.Inputs {
		dtype := dtypeOf(b)
		switch {
		case b.Reference:
			inputs = append(inputs, mlxc.Zeros(dtype))
		case small>>i&1 == 1:
			inputs = append(inputs, mlxc.Zeros(dtype, 7))
		default:
			inputs = append(inputs, mlxc.Zeros(dtype, 8))
		}
	}
	for _, b := range k.source.Outputs {
		l.Outputs = append(l.Outputs, mlxc.Output{Shape: []int{8}, DType: dtypeOf(b)})
	}
	l.Grid, l.Threadgroup = [3]int{32}, [3]int{32}
	return k.withDefaults(l), inputs
}

// The host executor and the sanitizer use exactly the source that MLX exports for a launch on a Metal device.
func TestHostExecutorTakesTheTextOfMLX(t *testing.T) {
	count := 0
	signatures(t, func(t *testing.T, k *Kernel, l Launch, inputs arrays) {
		nodes, err := mlxc.Trace(func(args arrays) (out arrays) {
			mlxc.WithPlaceholderGPU(func() { out = k.Launch(l, args...) })
			return out
		}, inputs)
		require.NoError(t, err)
		i := slices.IndexFunc(nodes, func(n mlxc.Node) bool { return n.Primitive == "CustomKernel" })
		require.GreaterOrEqual(t, i, 0)
		exported := nodes[i].Strings[1]

		var rewritten string
		compile = func(_ context.Context, source string) (*executor.Library, error) {
			rewritten = source
			return nil, errors.New("not now")
		}
		defer func() { compile = executor.Compile }()
		p, err := k.build(l, inputs)
		require.ErrorContains(t, err, "not now")
		require.Equal(t, exported, p.text)
		want, err := translate.Host(exported, translate.Conversions{})
		require.NoError(t, err)
		require.Equal(t, want.Source, rewritten)

		checked, err := k.sanitizer.MetalSource(toLaunch(l), toArrays(inputs)...)
		require.NoError(t, err)
		require.Equal(t, exported, checked, "package sanitizer generates the same text without MLX")
		count++
	})
	require.Greater(t, count, 50)
}

// The address-space check, which stands in for Apple's compiler, accepts every text of every kernel. A sample has some
// texts of each.
func TestAddressSpacesOfEveryKernel(t *testing.T) {
	n, seen := 0, map[string]bool{}
	signatures(t, func(t *testing.T, k *Kernel, l Launch, inputs arrays) {
		n++
		if seen[k.name] && !long.Full() && n%24 != 0 {
			return
		}
		seen[k.name] = true
		text, err := k.MetalSource(l, inputs...)
		require.NoError(t, err)
		findings, err := addrspace.Check(t.Context(), text)
		require.NoError(t, err)
		require.Empty(t, findings)
	})
}
