// Package launchspec reads launch descriptions: comments of a shader file that say how to launch its kernels. A tool
// or a test can then run a kernel without knowing its parameters.
//
// A description begins with "// launch:" at the start of a line. It may continue on the comment lines directly below,
// if each begins with "with:":
//
//	// launch: scale grid=1000 threadgroup=256 T=float16
//	//   with: x=float16[10,100] factor=float32:2.5 y=out:float16[10,100]
//
// A description is a list of words separated by spaces. The first words name kernels, and the description applies to
// each of them. Without a name it applies to the only kernel of the file. A kernel may have several descriptions. The
// other words are settings in any order. A setting contains no space:
//
//	grid=X[,Y[,Z]]         threads along each axis; required
//	threadgroup=X[,Y[,Z]]  threads of a threadgroup along each axis; required
//	init=NUMBER            initial value of every output; without it the outputs are undefined
//	seeds=N                N launches, whose random inputs have consecutive seeds
//	NAME=DTYPE             template argument for a type parameter
//	NAME=INTEGER           template argument for a number, or function constant
//	NAME=true|false        template argument for a bool, or function constant
//	NAME=FRACTION          function constant
//	NAME=threadgroup:N     number of elements of a [[threadgroup(n)]] argument
//	NAME=out:DTYPE[SHAPE]  output
//	NAME=undefined:DTYPE[SHAPE]
//	                       output whose elements the kernel may leave undefined
//	NAME=inout:DTYPE[SHAPE]:FILL
//	                       output that the kernel also reads, with its initial content
//	NAME=out:DTYPE[SHAPE]:expect=VALUES[:within=TOLERANCE]
//	                       output with its values after the launch; also for undefined: and inout:
//	NAME=DTYPE[SHAPE]      input with the default fill of its dtype
//	NAME=DTYPE[SHAPE]:FILL input
//	NAME=DTYPE:NUMBER      input without axes, for a "constant T&"
//	NAME=sampler[:OPTION,…]
//	                       state of a sampler argument
//	NAME.FIELD=FILL        numbers of a field of a structure; FIELD may be size.width or parts[1].width
//	NAME.FIELD=BUFFER      pointer or texture in a structure: the name of a buffer or texture of the description
//	NAME.FIELD=sampler[:OPTION,…]
//	                       sampler in a structure
//
// NAME is the kernel's parameter, DTYPE MLX's name of a dtype, and SHAPE a list of lengths separated by commas. FILL is
// one of
//
//	normal     standard normal random numbers (default of floating-point dtypes)
//	uniform    random numbers from [0, 1)
//	LOW..HIGH  random integers from LOW to HIGH inclusive (default of integers: 0..9, of bool: 0..1)
//	iota       0, 1, 2, …
//	zeros      0 everywhere
//	ones       1 everywhere
//	V          the number V everywhere
//	V,V,…      one number for each element
//	@FILE      the elements of a file
//
// A structure needs a value for each field. A pointer may refer to an argument of the kernel or to another buffer, which the
// description gives like an argument.
//
// For a texture, DTYPE is a pixel format: r, rg or rgba, then 8unorm, 8snorm, 8uint, 8sint, 16unorm, 16snorm, 16uint,
// 16sint, 16float, 32uint, 32sint or 32float, or bgra8unorm. SHAPE is [WIDTH], [LAYERS,WIDTH], [HEIGHT,WIDTH],
// [LAYERS,HEIGHT,WIDTH] or [DEPTH,HEIGHT,WIDTH]. The elements are the components of the pixels. Normalized formats hold
// numbers from 0 or -1 to 1, and their default fill is uniform. OPTION is one of Metal's, such as filter::linear.
//
// VALUES is a number for all elements, one number for each, @FILE, or an expression. FILE lies in the folder of the
// shader. A file whose name ends in .npy has NumPy's format, and its elements in C's order. Expected values may have any
// dtype, other elements that of the buffer. A file .bin holds the bytes of the elements, in the buffer's dtype and
// little-endian. Any other file holds numbers separated by spaces and lines. [Spec.ReadFiles] reads the files.
//
// The expression has Go's syntax, without spaces. It computes element i from the inputs and from the initial content of
// inout: buffers:
//
//	2*x[i]+1
//	where(i%4==0,x[i],0)
//	sum(k,0,16,a[i/8*16+k]*b[k*8+i%8])
//	x[i]*params.scale+params.table[i%4]
//
// Integers divide as in C++. The functions are abs, ceil, cos, erf, exp, float, floor, log, max, min, pow, round, sin,
// sqrt, tan, tanh and trunc, where(condition,a,b), and the reductions sum(k,low,high,term) and
// greatest(k,low,high,term), with low ≤ k < high. TOLERANCE bounds the errors relative to the greatest expected
// magnitude; package sanitizer documents its default.
package launchspec
