package launchspec

import (
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

func ExampleParse() {
	src := []byte(`// launch: scale grid=1000 threadgroup=256 T=float16
//   with: x=float16[10,100]:iota factor=float32:2.5 y=out:float16[10,100]
`)
	specs, err := Parse(src)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := specs[0]
	fmt.Println(s.Kernel, s.Launch.Grid, s.Launch.Threadgroup, s.Launch.Template)
	for _, in := range s.Inputs {
		fmt.Println("in", in.Name, in.DType, in.Shape)
	}
	for i, out := range s.Launch.Outputs {
		fmt.Println("out", s.OutputNames[i], out.DType, out.Shape)
	}
	// Output:
	// scale [1000 0 0] [256 0 0] [{T float16}]
	// in x float16 [10 100]
	// in factor float32 []
	// out y float16 [10 100]
}

// oneLaunch parses a description that has exactly one launch.
func oneLaunch(t *testing.T, text string) Spec {
	t.Helper()
	specs, err := Parse([]byte("// launch: " + text))
	require.NoError(t, err)
	require.Len(t, specs, 1)
	return specs[0]
}

func TestLaunchDescriptions(t *testing.T) {
	specs, err := Parse([]byte("kernel void f() {}\n"))
	require.NoError(t, err)
	require.Empty(t, specs)

	specs, err = Parse([]byte("// A file.\n// launch:a b grid=8,4,2 threadgroup=8 init=-1.5 y=out:int8[2,3]\n" +
		"  //  launch: grid=1 threadgroup=1\r\n//with: C=4 HALF=false T=bfloat16\n// with: z=out:float32[0] y=out:bool\n" +
		"//\n// with: a comment, not of a description\n// Launch: another, and launch: too\nkernel void f() {} // launch: nor this\n"))
	require.NoError(t, err)
	require.Len(t, specs, 3)
	init := float32(-1.5)
	first := sanitizer.Launch{
		Grid: [3]int{8, 4, 2}, Threadgroup: [3]int{8}, InitValue: &init,
		Outputs: []sanitizer.Output{{Shape: []int{2, 3}, DType: sanitizer.Int8}},
	}
	require.Equal(t, Spec{Kernel: "a", Line: 2, Launch: first, OutputNames: []string{"y"}}, specs[0])
	require.Equal(t, Spec{Kernel: "b", Line: 2, Launch: first, OutputNames: []string{"y"}}, specs[1])
	require.Equal(t, Spec{Line: 3, OutputNames: []string{"z", "y"}, Launch: sanitizer.Launch{
		Grid: [3]int{1}, Threadgroup: [3]int{1},
		Outputs:  []sanitizer.Output{{Shape: []int{0}, DType: sanitizer.Float32}, {DType: sanitizer.Bool}},
		Template: []sanitizer.TemplateArg{{Name: "C", Value: 4}, {Name: "HALF", Value: false}, {Name: "T", Value: sanitizer.BFloat16}},
	}}, specs[2])
}

func TestBrokenLaunchDescriptions(t *testing.T) {
	for text, part := range map[string]string{
		"":                                   "grid is missing: add grid=THREADS",
		"f":                                  "grid is missing",
		"grid=1 y=out:float32[1]":            "threadgroup is missing",
		"see below.":                         `"below." is neither the name of a kernel nor a setting`,
		"grid=8 f threadgroup=8":             `"f" is not a setting`,
		"grid=8, 8 threadgroup=8":            `"" is not a number of threads`,
		"2x=1":                               `"2x" is not the name of a parameter`,
		"x =float32[1]":                      `"" is not the name`,
		"grid=1 grid=2":                      "grid is given twice",
		"x=float32[1] x=1":                   "x is given twice",
		"grid=0":                             `"0" is not a number of threads`,
		"grid=-1":                            `"-1" is not a number of threads`,
		"grid=1,2,3,4":                       "at most three",
		"grid=99999999999":                   "not a number of threads",
		"threadgroup=":                       `"" is not a number of threads`,
		"init=zero":                          "write init=NUMBER",
		"x=":                                 "write DTYPE[SHAPE]",
		"x=float:1":                          `"float" is not a dtype: write one of [bool uint8`,
		"x=1.5e3":                            "write DTYPE[SHAPE]",
		"x=threadgroup:":                     `"" is not a number of elements`,
		"x=threadgroup:0":                    `"0" is not a number of elements: write NAME=threadgroup:ELEMENTS`,
		"x=inout:":                           "write DTYPE[SHAPE]",
		"x=inout:uint8[4]:0..256":            "256 does not fit uint8",
		"x=float32[":                         "write DTYPE[SHAPE]",
		"x=float32[]":                        `"" is not the length of an axis`,
		"x=float32[4 ,4]":                    "write DTYPE[SHAPE]",
		"x=float32[-4]":                      `"-4" is not the length`,
		"x=float32[n]":                       `"n" is not the length`,
		"x=float32[1000000,1000000]":         "make it smaller",
		"x=float32[9223372036854775807,2,2]": "make it smaller",
		"x=float32[4]:":                      "the fill after the colon is empty",
		"x=float32[4]:random":                `"random" is not a fill: write normal, uniform`,
		"x=int32[4]:normal":                  "normal is for floating-point dtypes: write LOW..HIGH",
		"x=bool[4]:uniform":                  "uniform is for floating-point dtypes",
		"x=int32[4]:1,2,3":                   "3 values for 4 elements",
		"x=int32:1,2":                        "2 values for 1 elements",
		"x=int32[4]:5..1":                    "is not a range",
		"x=int32[4]:1.5..2":                  "is not a range",
		"x=float32[4]:-99999999999999999..1": "is not a range",
		"x=uint8[4]:0..256":                  "256 does not fit uint8: write an integer from 0 to 255",
		"x=uint32:-1":                        "-1 does not fit uint32",
		"x=int8:128":                         "128 does not fit int8: write an integer from -128 to 127",
		"x=int64:0.5":                        "0.5 does not fit int64",
		"x=bool:2":                           "2 does not fit bool",
		"x=uint8[300]:iota":                  "iota ends at 299, which uint8 cannot hold",
		"x=bool[3]:iota":                     "iota ends at 2, which bool cannot hold",
		"x=int32:nan":                        "does not fit int32",
		"y=out:float":                        `"float" is not a dtype`,
		"y=out:float32[4]:zeros":             "an output has no values",
		"y=out:":                             "write DTYPE[SHAPE]",
	} {
		_, err := Parse([]byte("\n// launch: " + text + "\n"))
		require.ErrorContains(t, err, part, text)
		require.ErrorContains(t, err, "line 2: launch description: ", text)
	}
}

func TestInputsOfDescriptions(t *testing.T) {
	s := oneLaunch(t, "grid=1 threadgroup=1 y=out:float32[1] n=float32[1000] u=float64[1000]:uniform i=int64[1000] b=bool[100] "+
		"r=int16[1000]:-3..3 k=uint8[4]:iota v=uint8[256]:iota z=bfloat16[3]:zeros o=int32[2]:ones c=float16[2]:0.5 l=float32[2,2]:1,-2,inf,4e9 s=uint32:7 e=float32[0]")
	arrays := map[string][]float64{}
	for _, in := range s.Inputs {
		a := in.Array(1)
		require.Equal(t, in.DType, a.DType)
		require.Equal(t, in.Shape, a.Shape)
		require.Len(t, a.Data, a.Size()*a.DType.Size())
		arrays[in.Name] = a.Values()
		require.Equal(t, arrays[in.Name], in.Array(1).Values(), "the same seed")
		if in.Fill.Kind != FillValues && in.Fill.Kind != FillIota && in.size() > 0 {
			require.NotEqual(t, arrays[in.Name], in.Array(2).Values(), "another seed")
		}
	}
	between := func(name string, low, high float64) {
		for _, v := range arrays[name] {
			require.GreaterOrEqual(t, v, low, name)
			require.LessOrEqual(t, v, high, name)
		}
	}
	sum, squares := 0.0, 0.0
	for _, v := range arrays["n"] {
		sum += v
		squares += v * v
	}
	require.InDelta(t, 0, sum/1000, 0.15)
	require.InDelta(t, 1, squares/1000, 0.2)
	between("u", 0, 1)
	between("i", 0, 9)
	between("b", 0, 1)
	between("r", -3, 3)
	for v := -3.0; v <= 3; v++ {
		require.Contains(t, arrays["r"], v, "both ends are included")
	}
	require.Equal(t, []float64{0, 1, 2, 3}, arrays["k"])
	require.EqualValues(t, 255, arrays["v"][255])
	require.Equal(t, []float64{0, 0, 0}, arrays["z"])
	require.Equal(t, []float64{1, 1}, arrays["o"])
	require.Equal(t, []float64{0.5, 0.5}, arrays["c"])
	require.Equal(t, []float64{1, -2, math.Inf(1), 4e9}, arrays["l"])
	require.Equal(t, []float64{7}, arrays["s"])
	require.Empty(t, arrays["e"])
	require.NotEqual(t, arrays["n"][:4], Input{Name: "m", DType: sanitizer.Float32, Shape: []int{4}}.Array(1).Values(),
		"random elements depend on the input's name")
}

func TestArgumentsDoNotMatchTheKernel(t *testing.T) {
	lib, err := sanitizer.Load(os.DirFS("../testdata"), "scale.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("scale")
	require.NoError(t, err)
	const rest = "scale grid=8 threadgroup=8 T=float32 "
	for text, part := range map[string]string{
		"x=float32[8] y=out:float32[8]":                                     "the input factor is missing: add factor=DTYPE[SHAPE]",
		"x=float factor=float32:2 y=out:float32[8]":                         `"float" is not a dtype: write one of [bool uint8`,
		"x=float32[8] factor=float32:2 z=float32[8] y=out:float32[8]":       "the kernel has no input z: its inputs are [x factor]",
		"x=float32[8] factor=float32:2 z=out:float32[8]":                    "the kernel has no output z: its outputs are [y]",
		"x=float32[8] factor=float32:2 y=float32[8] z=out:float32[8]":       `the kernel writes y: write y=out:`,
		"x=out:float32[8] factor=float32:2":                                 `the kernel only reads x: write x=DTYPE[SHAPE]`,
		"x=inout:float32[8] factor=float32:2":                               `the kernel only reads x: write x=DTYPE[SHAPE]`,
		"x=float32[8] factor=float32:2 y=out:float32[8] group=out:int32[8]": "the kernel has no output group",
	} {
		_, _, err := oneLaunch(t, rest+text).Arguments(k, 1)
		require.ErrorContains(t, err, part, text)
		require.ErrorContains(t, err, "line 1: launch description of scale: ", text)
	}
}

// An argument may have the name of a setting.
func TestArgumentCalledGrid(t *testing.T) {
	s := oneLaunch(t, "grid=4 threadgroup=2 grid=float32[8] threadgroup=threadgroup:64")
	require.Equal(t, [3]int{4}, s.Launch.Grid)
	require.Equal(t, [3]int{2}, s.Launch.Threadgroup)
	require.Equal(t, "grid", s.Inputs[0].Name)
	require.Equal(t, map[string]int{"threadgroup": 64}, s.ThreadgroupSizes)
	_, err := Parse([]byte("// launch: grid=4 threadgroup=2 grid=float32[8] grid=float32[8]"))
	require.ErrorContains(t, err, "grid is given twice")
}
