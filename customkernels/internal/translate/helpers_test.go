package translate

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// parseFile parses a file of the parser's testdata and returns its text.
func parseFile(t *testing.T, name string) (*msl.File, string) {
	t.Helper()
	const folder = "../msl/testdata"
	src, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	file, err := msl.Parse(os.DirFS(folder), name)
	require.NoError(t, err)
	return file, string(src)
}

// parseText parses a text as a file.
func parseText(text string) (*msl.File, error) {
	return msl.Parse(fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal")
}

// generatedTexts returns texts that MLX generates, by name: of the samples, of the example and of all shaders of this
// project.
func generatedTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{"norm": exampleNorm(t), "histogram": exampleHistogram(t)}
	for _, name := range []string{"mlx_sample", "mlx_atomic"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".metal"))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	shaders, err := filepath.Glob("../../shaders/*.metal")
	require.NoError(t, err)
	for _, shader := range shaders {
		file, err := msl.Parse(os.DirFS("../../shaders"), filepath.Base(shader))
		require.NoError(t, err)
		for _, k := range file.Kernels {
			texts[k.Name] = generateDefault(k, false)
			texts[k.Name+" of small inputs"] = generateDefault(k, true)
		}
	}
	return texts
}

// generateDefault returns the text that MLX generates for a kernel: template types are half, template numbers 4
// (LANES is 1, and so PAIRED is false). small makes the inputs in constant memory small. Inputs in device memory are never small.
func generateDefault(k *msl.Kernel, small bool) string {
	m := MLX(k)
	dtype := func(b *msl.Buffer) string {
		return cmp.Or(msl.DType(b.Element), "float16_t")
	}
	var inputs []MLXInput
	for i, b := range m.Inputs {
		constant := b.Space == msl.Constant
		scalar := constant && b.Reference && !m.Cast[i]
		inputs = append(inputs, MLXInput{Type: dtype(b), Scalar: scalar, Small: scalar || small && constant})
	}
	var outputs []string
	for _, b := range m.Outputs {
		outputs = append(outputs, dtype(b))
	}
	var template []MLXTemplateArgument
	for _, p := range k.Template {
		switch {
		case p.Kind == msl.TypeParameter:
			template = append(template, MLXTemplateArgument{"typename", "float16_t"})
		case p.Name == "PAIRED":
			template = append(template, MLXTemplateArgument{"bool", "0"})
		case p.Kind == msl.BoolParameter:
			template = append(template, MLXTemplateArgument{"bool", "1"})
		case p.Name == "LANES":
			template = append(template, MLXTemplateArgument{"int", "1"})
		default:
			template = append(template, MLXTemplateArgument{"int", "4"})
		}
	}
	return m.Text(k.Name, template, inputs, outputs)
}

// exampleNorm returns MLX's generated text for the example's kernel norm.
func exampleNorm(t *testing.T) string {
	t.Helper()
	file, _ := parseFile(t, "example.metal")
	k, err := file.Kernel("norm")
	require.NoError(t, err)
	m := MLX(k)
	require.Equal(t, []string{"x", "weight", "mlxg_table_in", "width"}, m.InputNames)
	return m.Text("norm",
		[]MLXTemplateArgument{{"typename", "float16_t"}, {"int", "4"}, {"int", "2"}, {"bool", "1"}},
		[]MLXInput{
			{Type: "float16_t"},
			{Type: "float16_t"},
			{Type: "float", Small: true},
			{Type: "uint32_t", Scalar: true, Small: true},
		},
		[]string{"float", "float16_t"})
}

// exampleHistogram returns MLX's generated text for the example's kernel histogram.
func exampleHistogram(t *testing.T) string {
	t.Helper()
	file, _ := parseFile(t, "example.metal")
	k, err := file.Kernel("histogram")
	require.NoError(t, err)
	return MLX(k).Text("histogram", nil, []MLXInput{{Type: "float"}, {Type: "uint8_t"}},
		[]string{"uint32_t", "float", "float"})
}
