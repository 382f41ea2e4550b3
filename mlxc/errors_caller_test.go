package mlxc_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

// requireMessage requires an mlxc.Error with the message want, apart from the caller, and with a caller in a test file.
func requireMessage(t *testing.T, err error, want string) {
	t.Helper()
	var e *mlxc.Error
	require.ErrorAs(t, err, &e)
	text, caller, _ := strings.Cut(err.Error(), " (at ")
	require.Equal(t, want, text)
	require.Regexp(t, `^mlxc/[a-z_]+_test\.go:\d+\)$`, caller)
}

// here returns the file and line of its caller.
func here() string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line)
}

func TestErrorsNameTheCaller(t *testing.T) {
	x, y := mlxc.Ones(mlxc.Float32, 2), mlxc.Ones(mlxc.Float32, 3)
	add := func(x arrays) arrays { return arrays{x[0].Add(y)} }
	for name, run := range map[string]func() (string, error){
		"operation":         func() (string, error) { return here(), x.Add(y).Err() },
		"carried by arrays": func() (string, error) { at, z := here(), x.Add(y); return at, z.Exp().Sum().Err() },
		"read": func() (string, error) {
			at, z := here(), x.Add(y)
			_, err := mlxc.ToSlice[float32](z)
			return at, err
		},
		"evaluation": func() (string, error) { return here(), mlxc.Eval(nil) },
		"evaluated failure": func() (string, error) {
			var inverse *mlxc.Array
			require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { inverse = mlxc.Zeros(mlxc.Float32, 2, 2).Inv() }))
			return here(), mlxc.Eval(inverse)
		},
		"generic":     func() (string, error) { _, err := mlxc.ToSlice[int8](x); return here(), err },
		"empty range": func() (string, error) { return here(), mlxc.RandomInt(nil, 1, 1, mlxc.Int8).Err() },
		"from data":   func() (string, error) { return here(), mlxc.FromSlice([]int8{1}, 2).Err() },
		"saved": func() (string, error) {
			z := x.Add(y)
			_ = z
			return here(), mlxio.SaveNPY(filepath.Join(t.TempDir(), "absent", "x"), x)
		},
		"device":   func() (string, error) { return here(), mlxc.SetDefaultDevice(mlxc.Device(9)) },
		"compiled": func() (string, error) { c := mlxc.Compile(nil); _, err := c.Call(x); return here(), err },
		"closed": func() (string, error) {
			c := mlxc.Compile(add)
			c.Close()
			_, err := c.Call(x)
			return hereBy(-1), err
		},
		"by reflection": func() (string, error) {
			f := reflect.ValueOf(x.Add)
			return here(), f.Call([]reflect.Value{reflect.ValueOf(y)})[0].Interface().(*mlxc.Array).Err()
		},
		"sync.Once": func() (string, error) {
			var z *mlxc.Array
			f := func() { z = x.Add(y) }
			at := hereBy(-1)
			new(sync.Once).Do(f)
			return at, z.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := run()
			var e *mlxc.Error
			require.ErrorAs(t, err, &e)
			dir, file := filepath.Split(want)
			require.Contains(t, err.Error(), " (at "+filepath.Base(dir)+"/"+file+")")
			for inner := (*mlxc.Error)(nil); errors.As(e, &inner) && errors.As(inner.Err, &e); {
				require.NotEmpty(t, e.Caller)
			}
			require.Equal(t, 1, strings.Count(err.Error(), " (at "), err)
			require.Equal(t, 1, strings.Count(err.Error(), "mlxc:"), err)
		})
	}
}

// hereBy returns the file and line of its caller, moved by a number of lines.
func hereBy(by int) string {
	_, file, line, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", file, line+by)
}

// If a function of the caller runs inside a transform, the error names a line of that function.
func TestErrorsInsideTransformsNameTheCallerOnce(t *testing.T) {
	x, y := mlxc.Ones(mlxc.Float32, 2), mlxc.Ones(mlxc.Float32, 3)
	var at string
	f := func(a arrays) arrays { at = here(); return arrays{a[0].Add(y).Sum()} }
	compiled := mlxc.Compile(f)
	defer compiled.Close()
	call := func(f mlxc.Func, x *mlxc.Array) func() error { return func() error { return f(arrays{x})[0].Err() } }
	for name, run := range map[string]func() error{
		"ValueAndGrad": func() error { _, _, err := mlxc.ValueAndGrad(f)(arrays{x}); return err },
		"nested": func() error {
			g := mlxc.AsFunc(mlxc.Grad(func(a arrays) arrays { return mlxc.Checkpoint(f)(a) }))
			_, _, err := mlxc.VJP(g, arrays{x}, arrays{x})
			return err
		},
		"Vmap":           call(mlxc.Vmap(f, nil, nil), x.ExpandDims(0)),
		"Compile":        func() error { _, err := compiled.Call(x); return err },
		"CustomFunction": call(mlxc.CustomFunction(f, mlxc.CustomRules{}), x),
		"Trace":          func() error { _, err := mlxc.Trace(f, arrays{x}); return err },
		"wrapped": func() error {
			return mlxc.NewError("outer", fmt.Errorf("layer %d: %w", 3, mlxc.NewError("middle", f(arrays{x})[0].Err())))
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := run().Error()
			dir, file := filepath.Split(at)
			require.Regexp(t, `^mlxc: .*add float32\(2\), float32\(3\): .* \(at `+regexp.QuoteMeta(filepath.Base(dir)+"/"+file)+`\)$`, text)
			require.Equal(t, 1, strings.Count(text, "mlxc:"), text)
			require.Equal(t, 1, strings.Count(text, " (at "), text)
		})
	}
}

// Every error of the package has a caller. Literals of Error occur only in errors.go, and in transform_compile.go,
// where withCaller sets the caller.
func TestErrorsAreMadeInOnePlace(t *testing.T) {
	testdevice.CPUOnly(t, "reads the package's source, which a package for another machine lacks")
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	set := token.NewFileSet()
	for _, name := range files {
		if name == "errors.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.CompositeLit); ok {
				if id, ok := l.Type.(*ast.Ident); ok && id.Name == "Error" {
					require.Equal(t, "transform_compile.go", name, "%v: use opError, which sets the caller", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func TestErrorsWithoutACauseOrACaller(t *testing.T) {
	require.Equal(t, "mlxc: op", (&mlxc.Error{Op: "op"}).Error())
	require.Equal(t, "mlxc: op: file does not exist", (&mlxc.Error{Op: "op", Err: fs.ErrNotExist}).Error())
	inner := &mlxc.Error{Op: "inner", Err: fs.ErrNotExist}
	require.Equal(t, "mlxc: outer: inner: file does not exist (at b/c.go:1)",
		(&mlxc.Error{Op: "outer", Err: inner, Caller: "/a/b/c.go:1"}).Error())
}
