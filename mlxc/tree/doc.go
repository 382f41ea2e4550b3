// Package tree works on trees of arrays: the parameters of a model, their gradients,
// the state of an optimiser.
//
// # What a tree is
//
// A tree is an *mlxc.Array, or a struct, map, slice or Go array of trees, or a pointer
// or an interface that holds one. Its arrays have an order and names, which follow from
// its type and keys alone:
//
//   - The fields of a struct come in the order of their declaration. A field's name is
//     that of its tag `mlx:"name"`, or the field's own in lower snake case: QProj is
//     q_proj. The fields of an embedded struct without a tag count as the outer one's.
//   - The entries of a map come in ascending order of their keys, which are strings or
//     integers and give the names.
//   - The elements of slices and arrays are named by their numbers, from 0.
//
// Names are joined with dots, as in files of weights: layers.0.q_proj. The name of a
// tree that is one array is empty. Nil slices, maps and pointers to anything but an array
// have no arrays.
//
// A field with the tag `mlx:"-"` is no part of the tree; trees that are made in the
// likeness of another get a copy of it. Every other field is: one that is not exported,
// or holds something else, is an error, so that no parameter is left out by mistake. So
// are a nil array, two arrays of one name, and a cycle. An array or a pointer that
// stands at two places counts twice, and what is made of it are two.
//
// An array with the tag `mlx:"name,omitempty"`, or `mlx:",omitempty"` for the field's own
// name, is optional: where it is nil, the tree has no such array. So can a layer do
// without a bias, and an mlxc.Quantized be part of a tree.
//
// # Training
//
// ValueAndGrad takes the gradient of a loss with respect to a tree, ValueAndGradAux that of one
// that has more to tell; Compile compiles a function from trees to trees, such as a step of
// training; package optim has the optimisers.
//
// Functions here build graphs and compute nothing, but for Eval. They neither keep nor
// free the arrays that they are given, and may be used by any number of goroutines.
package tree
