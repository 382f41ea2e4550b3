package launchspec

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

const scaleLaunch = "scale grid=4 threadgroup=4 T=float32 factor=float32:2 x=float32[4]:1,-2,3,4 y=out:float32[4]:expect="

// scaleArguments returns the arguments of a launch of testdata/scale.metal.
func scaleArguments(t *testing.T, s Spec) (sanitizer.Launch, error) {
	t.Helper()
	lib, err := sanitizer.Load(os.DirFS("../testdata"), "scale.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("scale")
	require.NoError(t, err)
	l, _, err := s.Arguments(k, 1)
	return l, err
}

func TestExpectedValues(t *testing.T) {
	for text, want := range map[string][]float64{
		"2,-4,6,8":                   {2, -4, 6, 8},
		"7":                          {7, 7, 7, 7},
		"i":                          {0, 1, 2, 3},
		"factor*x[i]":                {2, -4, 6, 8},
		"x[i/2*2]+i%2":               {1, 2, 3, 4},
		"-x[3-i]/(1+1)":              {-2, -1.5, 1, -0.5},
		"7/2":                        {3, 3, 3, 3},
		"7/2.0":                      {3.5, 3.5, 3.5, 3.5},
		"where(x[i]>0,sqrt(x[3]),0)": {2, 0, 2, 2},
		"sum(k,0,4,abs(x[k]))":       {10, 10, 10, 10},
		"sum(k,0,i,sum(j,0,k,1))":    {0, 0, 1, 3},
		"greatest(k,0,2,x[k])":       {1, 1, 1, 1},
		"max(x[i],2)+min(i,1)":       {2, 3, 4, 5},
		"pow(2,i)":                   {1, 2, 4, 8},
	} {
		l, err := scaleArguments(t, oneLaunch(t, scaleLaunch+text))
		require.NoError(t, err, text)
		require.Equal(t, map[string]sanitizer.Expected{"y": {Values: want}}, l.Expected, text)
	}
	l, err := scaleArguments(t, oneLaunch(t, scaleLaunch+"i:within=1e-3"))
	require.NoError(t, err)
	require.Equal(t, 1e-3, l.Expected["y"].Tolerance)
}

func TestExpectedValuesInFile(t *testing.T) {
	files := fstest.MapFS{"shaders/y.txt": {Data: []byte("1 2\n3\t4\n")}, "shaders/bad.txt": {Data: []byte("1 x")}}
	s := oneLaunch(t, scaleLaunch+"@y.txt")
	_, err := scaleArguments(t, s)
	require.ErrorContains(t, err, "the expected values of y are in a file: call Spec.ReadFiles first")
	require.NoError(t, s.ReadFiles(files, "shaders"))
	l, err := scaleArguments(t, s)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3, 4}, l.Expected["y"].Values)

	s = oneLaunch(t, scaleLaunch+"@bad.txt")
	require.ErrorContains(t, s.ReadFiles(files, "shaders"), `line 1: launch description: expected values of y: bad.txt: "x" is not a number`)
	s = oneLaunch(t, scaleLaunch+"@none.txt")
	require.ErrorContains(t, s.ReadFiles(files, "shaders"), "none.txt")
}

func TestWrongExpectations(t *testing.T) {
	for text, part := range map[string]string{
		"1,2":                 "2 expected values for the 4 elements of y",
		"x[i+1]":              "expected value 3 of y: x[4] lies outside of its 4 elements",
		"x[0.5]":              "x[0.5] lies outside",
		"z[i]":                "the launch has no input z",
		"x":                   "x is neither i, a variable of a reduction, nor an input or field with one element",
		"i/0":                 "division by zero",
		"i&1":                 "the operator & is not known",
		"!i":                  "the operator ! is not known",
		"round(1,2)":          "there is no function round of 2 arguments",
		"sum(k,0,99999999,1)": "write sum(k,low,high,term) with at most",
		"\"a\"":               "is not a number",
		"x[0:1]":              "write an expression of numbers",
		"p.scale":             "p.scale is neither i",
		"f(x).y":              "write an expression of numbers",
	} {
		_, err := scaleArguments(t, oneLaunch(t, scaleLaunch+text))
		require.ErrorContains(t, err, part, text)
	}
	for text, part := range map[string]string{
		"":           `"" is neither a list of numbers nor an expression`,
		"1+":         `"1+" is neither`,
		"i:within=":  `"" is not a tolerance`,
		"i:within=0": `"0" is not a tolerance: write a positive number`,
	} {
		_, err := Parse([]byte("// launch: " + scaleLaunch + text))
		require.ErrorContains(t, err, part, text)
	}
	for _, seeds := range []string{"0", "x", "1001"} {
		_, err := Parse([]byte("// launch: grid=1 threadgroup=1 seeds=" + seeds))
		require.ErrorContains(t, err, `"`+seeds+`" is not a number of seeds`)
	}
	require.Equal(t, 3, oneLaunch(t, "grid=1 threadgroup=1 seeds=3").Seeds)
}
