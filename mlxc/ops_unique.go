package mlxc

// UniqueResult describes the distinct elements of an array. Values, First and Counts have the size passed to Unique.
type UniqueResult struct {
	Values  *Array // the distinct elements, ascending, then the padding
	First   *Array // uint32: the position of the first occurrence of each value in the flattened array
	Inverse *Array // uint32: for each element, in the shape of the array, the position of its value in Values
	Counts  *Array // int32: the number of occurrences of each value; 0 for padding
}

// Unique returns the distinct elements of the flattened array, cut or padded to size elements, because the shape of a
// result cannot depend on values. If there are more than size distinct elements, Values holds the smallest, and Inverse
// has size−1 for the others. If there are fewer, Values is padded with fill, a scalar, or with the smallest element if
// fill is nil. An empty array is an error. It needs MLX 0.32.4. On a GPU, booleans are an error.
func (a *Array) Unique(size int, fill *Array) UniqueResult {
	all := orInvalid(4)(mlxUnique(a, size, true, true, true, fill))
	return UniqueResult{Values: all[0], First: all[1], Inverse: all[2], Counts: all[3]}
}
