// Package msl reads Metal Shading Language text.
//
// It works on the text alone: no compiler, no preprocessor and no cgo. [Parse] takes a complete shader file, as Xcode
// would compile it, with the files that it includes. It returns the kernels with their arguments and bodies, and the
// rest of the text as a header. Bodies equal the file's text, byte for byte.
//
// Three layers build on each other:
//
//   - [Tokenize] splits a text into tokens. The tokens and the white space between them make up the text, byte for
//     byte.
//   - [Structure] matches the brackets, drops the branches that the preprocessor excludes, and lists the declarations
//     ([Item]). [Code] finds the words that are address-space qualifiers.
//   - The parser reads kernels from the items, and refuses constructs that Metal does not have.
//
// Package translate rewrites texts for MLX, for the host and for CUDA. Package addrspace rewrites them for clang. Both
// edit tokens in place with [Edits], so the token layer is exported.
//
// Every problem with a shader is an [*Error] with file, line, column and advice. No input makes the package panic.
package msl
