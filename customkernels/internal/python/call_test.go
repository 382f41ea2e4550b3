package python

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const module = `import mlx.core as mx
# metal_kernel("comment")
"""metal_kernel("docstring")"""
HEADER: str = r'''#define N \n'''
TWICE = "a"
TWICE = "b"
def metal_kernel(x): pass
k = mx.fast.metal_kernel(
  name="one", input_names=["x", 'y'], output_names=("z",), header=HEADER, # why
  source="""a\tb\
c
  d\q""", atomic_outputs=True, ensure_row_contiguous=False)
metal_kernel("two", [], ["z"], ("e\x41"
    f"{{f}}" 'g'))
`

func TestCalls(t *testing.T) {
	calls := Calls("m.py", module)
	require.Len(t, calls, 2)
	one, two := calls[0], calls[1]
	require.NoError(t, one.Problem)
	require.Equal(t, "one", one.Name)
	require.Equal(t, []string{"x", "y"}, one.Inputs)
	require.Equal(t, []string{"z"}, one.Outputs)
	require.Equal(t, `#define N \n`, one.Header.Value)
	require.Equal(t, "a\tbc\n  d\\q", one.Source.Value)
	require.True(t, one.AtomicOutputs)
	require.Equal(t, "m.py:8:13", one.Pos.String())
	require.NoError(t, two.Problem)
	require.Equal(t, "eA{f}g", two.Source.Value)
	require.Empty(t, two.Inputs)
	for _, text := range []Text{one.Source, one.Header, two.Source} {
		require.Len(t, text.Offsets, len(text.Value))
	}
	for i, c := range []byte("abc\n  d") { // each byte comes from its place
		if at := map[byte]int{'a': 0, 'b': 2, 'c': 3}[c]; c != '\n' && c != ' ' && c != 'd' {
			require.Equal(t, c, module[one.Source.Offsets[at]], i)
		}
	}
	require.Equal(t, byte('A'), two.Source.Value[1])
	require.Equal(t, byte('\\'), module[two.Source.Offsets[1]])
	require.Equal(t, byte('g'), module[two.Source.Offsets[5]])
}

// A call whose arguments only Python can compute is reported with its place.
func TestUnsupportedCalls(t *testing.T) {
	for arguments, want := range map[string]string{
		`name=f"a{n}", source="s"`:                    "m.py:5:14: metal_kernel: name: the text is no plain string",
		`"a", ["x"], ["y"], "s" + "t"`:                "m.py:5:37: metal_kernel: source: the text is no plain string",
		`"a", ["x"], ["y"], "s".format(1)`:            "the text is no plain string",
		`"a", ["x"], ["y"], AGAIN`:                    "the text is no plain string",
		`"a", ["x"], ["y"], UNKNOWN`:                  "the text is no plain string",
		`"a", ["x"], ["y"], SUM`:                      "the text is no plain string",
		`"a", ["x"], ["y"], b"s"`:                     "the text is no plain string",
		`"a", ["x"], ["y"], "\N{DASH}"`:               "the text is no plain string",
		`"a", ["x"], ["y"], "never ends`:              "the text is no plain string",
		`"a", NAMES, ["y"], "s"`:                      "metal_kernel: input_names: it is no list of strings",
		`"a", ["x"], ["y"]`:                           "m.py:5:1: metal_kernel: the argument source is missing",
		`"a", ["x"], ["y"], "s", atomic_outputs=f()`:  "atomic_outputs: it is neither True nor False",
		`"a", ["x"], ["y"], "s", stream="s"`:          "stream: it is none of name, input_names,",
		`*arguments`:                                  "the text is no plain string",
		``:                                            "the argument name is missing",
		`"a", ["x"], ["y"], "s", "", True, False, 1)`: "it is none of name",
	} {
		calls := Calls("m.py", "AGAIN = 'a'\nAGAIN = 'b'\nSUM = 'a' + 'b'\n\nmetal_kernel("+arguments+")\n")
		require.Len(t, calls, 1, arguments)
		require.ErrorContains(t, calls[0].Problem, want, arguments)
	}
}

// The scanner accepts any text.
func FuzzCalls(f *testing.F) {
	f.Add(module)
	f.Add("metal_kernel(")
	f.Add("metal_kernel('''")
	f.Add("x = (\\\r\nmetal_kernel(name=\"\\")
	f.Fuzz(func(t *testing.T, src string) {
		for _, c := range Calls("m.py", src) {
			require.Len(t, c.Source.Offsets, len(c.Source.Value))
		}
	})
}
