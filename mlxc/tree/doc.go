// Package tree works on trees of arrays: the parameters of a model, their gradients, the state of an optimizer.
//
// # Trees
//
// A tree is an *mlxc.Array; or a struct, map, slice or Go array of trees; or a pointer or an interface that holds one.
// Its arrays have an order and names, which depend only on the tree's type and keys:
//
//   - Struct fields are in the order of their declaration. A field's name is the name in its tag `mlx:"name"`, or the
//     field's own in lower snake case: QProj is q_proj. Fields of an embedded struct without a tag count as fields of
//     the outer struct.
//   - Map entries are in ascending order of their keys, which are strings or integers and give the names.
//   - Elements of slices and arrays are named by their index, from 0.
//
// Names are joined by dots, as in files of weights: layers.0.q_proj. The name of a tree that is a single array is
// empty. Nil slices, nil maps and nil pointers other than *mlxc.Array contribute no arrays.
//
// A field with the tag `mlx:"-"` is not part of the tree. Functions that return a new tree copy such a field from their
// argument. Every other field is part of the tree. A field that is not exported, or holds anything but a tree, is an
// error, so that no parameter is left out by mistake. A nil array, two arrays of one name, and a cycle are errors, too.
// An array or a pointer at two positions counts twice, and becomes two in a new tree.
//
// An array with the tag `mlx:"name,omitempty"`, or `mlx:",omitempty"` for the field's own name, is optional: if it is
// nil, it is not part of the tree. A layer may thus have no bias, and an mlxc.Quantized can be part of a tree.
//
// # Training
//
// ValueAndGrad computes the gradient of a loss with respect to a tree. ValueAndGradAux does the same for a function
// that also returns auxiliary results. Compile compiles a function from trees to trees, such as a training step.
// Package optim has optimizers, and a Trainer that joins all of these.
//
// Functions of this package build graphs; only Eval computes. They neither keep nor free their arguments, except Keep
// and Free. Any number of goroutines may use them.
package tree
