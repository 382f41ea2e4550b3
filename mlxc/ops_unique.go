package mlxc

// UniqueResult describes the distinct elements of an array. All arrays but Inverse have the size that Unique was called
// with.
type UniqueResult struct {
	Values  *Array // the distinct elements, ascending, then the padding
	First   *Array // the position of the first occurrence of each value in the flattened array
	Inverse *Array // for each element, in the shape of the array, the position of its value in Values
	Counts  *Array // the number of occurrences of each value; 0 for padding
}

// Unique returns the distinct elements of the flattened array, as many as size says: the shape of a result cannot depend
// on values. Of more distinct elements, the smallest are returned, and Inverse has size−1 for the others. Fewer are padded
// with fill, a scalar, or with the smallest element if fill is nil. It needs MLX 0.32.4. On a GPU, booleans are an error.
func (a *Array) Unique(size int, fill *Array) UniqueResult {
	all := orInvalid(4)(mlxUnique(a, size, true, true, true, fill))
	return UniqueResult{Values: all[0], First: all[1], Inverse: all[2], Counts: all[3]}
}
