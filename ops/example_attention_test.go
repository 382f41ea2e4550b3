package ops_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func ExampleAttention() {
	// One query, with two heads that share one key head, sees the first two of three keys.
	seen := mlxc.FromSlice([]bool{true, true, false})
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		out := ops.Attention(args[0], args[1], args[2], ops.AttentionConfig{Scale: 1, Mask: seen})
		return []*mlxc.Array{out.Sum()}
	}
	q := mlxc.Zeros(mlxc.Float32, 1, 2, 1, 2)
	k := mlxc.FromSlice([]float32{1, 0, 0, 1, 5, 5}, 1, 1, 3, 2)
	v := mlxc.FromSlice([]float32{1, 2, 3}, 1, 1, 3, 1)
	values, grads, err := mlxc.ValueAndGrad(loss, 0, 2)([]*mlxc.Array{q, k, v})
	if err != nil {
		fmt.Println(err)
		return
	}
	dq, err := mlxc.ToSlice[float32](grads[0])
	fmt.Println(values[0], dq, err)
	dv, err := mlxc.ToSlice[float32](grads[1])
	fmt.Println(dv, err)
	// Output:
	// array(3, dtype=float32) [-0.25 0.25 -0.25 0.25] <nil>
	// [1 1 0] <nil>
}

// Two packed documents have three and two tokens.
func ExampleAttention_sequences() {
	starts := mlxc.FromSlice([]int32{0, 3, 5})
	q := mlxc.Zeros(mlxc.Float32, 1, 1, 5, 1)
	v := mlxc.FromSlice([]float32{1, 2, 3, 10, 20}, 1, 1, 5, 1)
	out := ops.Attention(q, q, v, ops.AttentionConfig{Causal: true, QueryStarts: starts, KeyStarts: starts})
	means, err := mlxc.ToSlice[float32](out)
	fmt.Println(means, err)
	// Output: [1 1.5 2 10 15] <nil>
}

// Attention over two parts of the keys is merged by the log-sum-exps of both.
func ExampleAttentionLogSumExp() {
	q := mlxc.Zeros(mlxc.Float32, 1, 1, 1, 1)
	v := mlxc.FromSlice([]float32{1, 2, 3, 6}, 1, 1, 4, 1)
	var outs, sums []*mlxc.Array
	for _, half := range [][2]int{{0, 1}, {1, 4}} {
		part := v.Slice([]int{0, 0, half[0], 0}, []int{1, 1, half[1], 1}, nil)
		out, lse := ops.AttentionLogSumExp(q, part, part, ops.AttentionConfig{})
		outs, sums = append(outs, out), append(sums, lse.ExpandDims(-1))
	}
	weights := mlxc.Concatenate(-1, sums...).Softmax(-1)
	whole, err := mlxc.Item[float32](weights.Mul(mlxc.Concatenate(-1, outs...)).Sum())
	fmt.Println(whole, err)
	// Output: 3 <nil>
}

func ExampleCausalAttention() {
	// Three tokens have two heads of one column each.
	q := mlxc.Zeros(mlxc.Float32, 3, 2)
	v := mlxc.FromSlice([]float32{2, 10, 4, 30, 9, 20}, 3, 2)
	fmt.Println(ops.CausalAttention(q, q, v, 2, 2))
	// Output:
	// array([[2, 10],
	//        [3, 20],
	//        [5, 20]], dtype=float32)
}
