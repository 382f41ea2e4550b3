// Package sanitizer checks Metal kernels on a CPU. It needs a C++ compiler at run time, and neither MLX nor cgo.
//
// [Kernel.Sanitize] runs a launch in a separate process under a checker that finds data races, wrong
// fences, divergent barriers, accesses out of bounds, uninitialized reads and more, each with file, line, element
// and threads. Package launchspec reads launches from the comments of a shader file:
//
//	lib, err := sanitizer.LoadNative(ctx, os.DirFS("shaders"), "scale.metal", sanitizer.NativeOptions{})
//	specs, err := launchspec.Parse(text)
//	kernel, err := lib.Kernel(specs[0].Kernel, specs[0].Options()...)
//	launch, inputs, err := specs[0].Arguments(kernel, seed)
//	report, err := kernel.Sanitize(ctx, launch, sanitizer.Config{}, inputs...)
//
// The command metalsan does this for whole files. [Load] is for shaders that MLX's custom kernels run: it checks the
// text that MLX generates from them.
package sanitizer
