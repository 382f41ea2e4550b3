package fuzz

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

// functions holds the exported functions of packages mlxc and mlxio that the tests call. Generic functions have one
// instance.
var functions = map[string]any{
	"ActiveMemory": mlxc.ActiveMemory, "Arange": mlxc.Arange, "AsFunc": mlxc.AsFunc, "AsyncEval": mlxc.AsyncEval,
	"At": mlxc.At, "Bartlett": mlxc.Bartlett, "Blackman": mlxc.Blackman, "BroadcastArrays": mlxc.BroadcastArrays,
	"CUDAAvailable": mlxc.CUDAAvailable, "CVersion": mlxc.CVersion, "CacheMemory": mlxc.CacheMemory,
	"Check": mlxc.Check, "Checkpoint": mlxc.Checkpoint, "ClearCache": mlxc.ClearCache,
	"ClearCompileCache": mlxc.ClearCompileCache, "Compile": mlxc.Compile, "CompileShapeless": mlxc.CompileShapeless,
	"Concatenate": mlxc.Concatenate, "Conv1D": mlxc.Conv1D, "Conv2D": mlxc.Conv2D, "Conv3D": mlxc.Conv3D,
	"ConvGeneral": mlxc.ConvGeneral, "ConvTranspose1D": mlxc.ConvTranspose1D, "ConvTranspose2D": mlxc.ConvTranspose2D,
	"ConvTranspose3D": mlxc.ConvTranspose3D, "CrossEntropy": mlxc.CrossEntropy, "CurrentBackend": mlxc.CurrentBackend,
	"CurrentDevice": mlxc.CurrentDevice, "CustomFunction": mlxc.CustomFunction, "CustomVJP": mlxc.CustomVJP,
	"DTypes": mlxc.DTypes, "DefaultDevice": mlxc.DefaultDevice, "Differentiating": mlxc.Differentiating,
	"Einsum": mlxc.Einsum, "Eval": mlxc.Eval, "Export": mlxc.Export, "ExportNamed": mlxc.ExportNamed,
	"ExportShapeless": mlxc.ExportShapeless, "ExportTraces": mlxc.ExportTraces, "Eye": mlxc.Eye,
	"FFTFreq": mlxc.FFTFreq, "GatedDeltaUpdate": mlxc.GatedDeltaUpdate,
	"FromSlice": mlxc.FromSlice[float32], "Full": mlxc.Full, "FullLike": mlxc.FullLike,
	"Grad": mlxc.Grad, "Hamming": mlxc.Hamming, "Hanning": mlxc.Hanning, "IDs": mlxc.IDs,
	"InvalidArray": mlxc.InvalidArray, "Item": mlxc.Item[float32], "JVP": mlxc.JVP, "LayerNorm": mlxc.LayerNorm,
	"Linspace": mlxc.Linspace, "LinspaceOpen": mlxc.LinspaceOpen, "LoadGGUF": mlxio.LoadGGUF, "LoadNPY": mlxio.LoadNPY,
	"LoadSafetensors": mlxio.LoadSafetensors, "MemoryLimit": mlxc.MemoryLimit, "Meshgrid": mlxc.Meshgrid,
	"MetalAvailable": mlxc.MetalAvailable, "MetalLibrary": mlxc.MetalLibrary, "NewCUDAKernel": mlxc.NewCUDAKernel,
	"NewError": mlxc.NewError, "NewMetalKernel": mlxc.NewMetalKernel, "Ones": mlxc.Ones, "OnesLike": mlxc.OnesLike,
	"PeakMemory": mlxc.PeakMemory, "PrintGraph": mlxc.PrintGraph, "RFFTFreq": mlxc.RFFTFreq, "RMSNorm": mlxc.RMSNorm,
	"RandomBernoulli": mlxc.RandomBernoulli, "RandomBits": mlxc.RandomBits, "RandomCategorical": mlxc.RandomCategorical,
	"RandomCategoricalN": mlxc.RandomCategoricalN, "RandomCategoricalShape": mlxc.RandomCategoricalShape,
	"RandomGumbel": mlxc.RandomGumbel, "RandomInt": mlxc.RandomInt, "RandomIntBroadcast": mlxc.RandomIntBroadcast,
	"RandomKey": mlxc.RandomKey, "RandomLaplace": mlxc.RandomLaplace,
	"RandomMultivariateNormal": mlxc.RandomMultivariateNormal, "RandomNormal": mlxc.RandomNormal,
	"RandomNormalBroadcast": mlxc.RandomNormalBroadcast, "RandomPermutation": mlxc.RandomPermutation,
	"RandomPermutationArange": mlxc.RandomPermutationArange, "RandomSeed": mlxc.RandomSeed, "RandomSplit": mlxc.RandomSplit,
	"RandomTruncatedNormal": mlxc.RandomTruncatedNormal, "RandomUniform": mlxc.RandomUniform,
	"RandomUniformBroadcast": mlxc.RandomUniformBroadcast, "Range": mlxc.Range, "ReadGGUF": mlxio.ReadGGUF,
	"ReadNPY": mlxio.ReadNPY, "ReadSafetensors": mlxio.ReadSafetensors, "ResetPeakMemory": mlxc.ResetPeakMemory,
	"RoPE": mlxc.RoPE, "RoPEDynamic": mlxc.RoPEDynamic, "SaveGGUF": mlxio.SaveGGUF, "SaveNPY": mlxio.SaveNPY,
	"SaveSafetensors": mlxio.SaveSafetensors, "Scalar": mlxc.Scalar[float64],
	"ScaledDotProductAttention": mlxc.ScaledDotProductAttention, "Stack": mlxc.Stack, "StreamNames": mlxc.StreamNames,
	"Synchronize": mlxc.Synchronize, "TF32Enabled": mlxc.TF32Enabled, "ToSlice": mlxc.ToSlice[float32], "Trace": mlxc.Trace,
	"Tri": mlxc.Tri, "VJP": mlxc.VJP, "ValueAndGrad": mlxc.ValueAndGrad, "Version": mlxc.Version,
	"FromSliceNoCopy": mlxc.FromSliceNoCopy[float32], "Vmap": mlxc.Vmap, "Where": mlxc.Where, "WithDevice": mlxc.WithDevice,
	"WithPlaceholderGPU": mlxc.WithPlaceholderGPU, "WithScope": mlxc.WithScope, "WithScopeErr": mlxc.WithScopeErr,
	"WithStream": mlxc.WithStream, "OutsideScopes": mlxc.OutsideScopes, "WriteDOT": mlxc.WriteDOT,
	"WriteGGUF": mlxio.WriteGGUF, "WriteNPY": mlxio.WriteNPY, "WriteSafetensors": mlxio.WriteSafetensors,
	"Zeros": mlxc.Zeros, "ZerosLike": mlxc.ZerosLike,
}

// types holds the exported types whose methods the tests call.
var types = []reflect.Type{
	reflect.TypeFor[*mlxc.Array](), reflect.TypeFor[*mlxc.Compiled](), reflect.TypeFor[mlxc.Quantized](),
	reflect.TypeFor[mlxc.DType](), reflect.TypeFor[mlxc.Device](),
	reflect.TypeFor[mlxc.Index](), reflect.TypeFor[*mlxc.Error](), reflect.TypeFor[*mlxc.PanicError](),
	reflect.TypeFor[*mlxc.Stream](), reflect.TypeFor[*mlxc.MetalKernel](),
}

// excluded maps functions and types that the tests do not call to the reason.
var excluded = map[string]string{
	"CUDAKernel":        "needs a CUDA device",
	"Import":            "a .mlxfn file is a program, which MLX does not check",
	"Imported":          "a .mlxfn file is a program, which MLX does not check",
	"HostFunction":      "takes C functions",
	"NewStream":         "each stream keeps a thread; the worker creates one stream",
	"ProfileArrays":     "a setting of the process",
	"SetCacheLimit":     "a setting of the process; the worker sets it",
	"SetCompileMode":    "a setting of the process; the worker sets it",
	"SetDefaultDevice":  "a setting of the process",
	"Shutdown":          "ends MLX for the process",
	"SetMemoryLimit":    "a setting of the process; the worker sets it",
	"SetMetalLibrary":   "a setting of the process",
	"SetWiredLimit":     "a setting of the process",
	"StartMetalCapture": "a setting of the process",
	"StopMetalCapture":  "a setting of the process",
}

// sources holds the folders of packages mlxc and mlxio.
var sources = []string{filepath.Join("..", ".."), filepath.Join("..", "..", "mlxio")}

// parameters returns the names of the parameters, receiver included, of every exported function and method of
// packages mlxc and mlxio. The keys are names such as Conv1D and Array.Add. Reflection does not provide parameter
// names.
func parameters() (map[string][]string, error) {
	var files []string
	for _, dir := range sources {
		in, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		files = append(files, in...)
	}
	all := map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			name, names := f.Name.Name, []string{}
			if f.Recv != nil {
				receiver := f.Recv.List[0].Type
				if p, ok := receiver.(*ast.StarExpr); ok {
					receiver = p.X
				}
				owner := receiver.(*ast.Ident)
				if !owner.IsExported() {
					continue
				}
				name, names = owner.Name+"."+name, []string{"receiver"}
			}
			for _, field := range f.Type.Params.List {
				for _, n := range field.Names {
					names = append(names, n.Name)
				}
			}
			all[name] = names
		}
	}
	return all, nil
}

// callable is a function or a method. A method's receiver is its first parameter.
type callable struct {
	name   string // "Conv1D", or "Array.Add"
	f      reflect.Value
	params []string
}

// table lists all functions in a fixed order, so that a seed leads to the same calls in every process.
func table() ([]callable, error) {
	params, err := parameters()
	if err != nil {
		return nil, err
	}
	var all []callable
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		all = append(all, callable{name, reflect.ValueOf(functions[name]), params[name]})
	}
	for _, t := range types {
		owner := t.Name()
		if t.Kind() == reflect.Pointer {
			owner = t.Elem().Name()
		}
		for i := range t.NumMethod() {
			m := t.Method(i)
			name := owner + "." + m.Name
			all = append(all, callable{name, m.Func, params[name]})
		}
	}
	return all, nil
}

// Every exported function and method is called, or excluded with a reason.
func TestEveryFunctionIsCalled(t *testing.T) {
	params, err := parameters()
	require.NoError(t, err)
	all, err := table()
	require.NoError(t, err)
	called := map[string]bool{}
	for _, c := range all {
		called[c.name] = true
		require.Len(t, c.params, c.f.Type().NumIn(), "%s: parameters", c.name)
	}
	named := map[string]bool{}
	for name := range params {
		owner, _, _ := strings.Cut(name, ".")
		named[name], named[owner] = true, true
		reason := excluded[name] + excluded[owner]
		require.NotEqual(t, called[name], reason != "", "%s must be either in the table or excluded", name)
	}
	for name := range excluded {
		require.True(t, named[name], "%s is excluded, but is not in the package", name)
	}
}
