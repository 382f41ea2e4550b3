package fuzz

// recipes maps functions that rarely accept random shapes to functions that draw acceptable shapes for the first array
// parameters. The options stay random.
var recipes = map[string]func(s *sequence) [][]int{
	"Conv1D":          func(s *sequence) [][]int { return s.convolution(1) },
	"Conv2D":          func(s *sequence) [][]int { return s.convolution(2) },
	"Conv3D":          func(s *sequence) [][]int { return s.convolution(3) },
	"ConvGeneral":     func(s *sequence) [][]int { return s.convolution(1 + s.IntN(3)) },
	"ConvTranspose1D": func(s *sequence) [][]int { return s.convolution(1) },
	"ConvTranspose2D": func(s *sequence) [][]int { return s.convolution(2) },
	"ConvTranspose3D": func(s *sequence) [][]int { return s.convolution(3) },
	"ScaledDotProductAttention": func(s *sequence) [][]int {
		b, h, d := s.pick(1, 2), s.pick(1, 2, 4), s.pick(4, 8, 32, 5)
		q, k, v := s.IntN(8), s.IntN(8), s.pick(d, d, 3)
		kv := s.pick(1, h)
		return [][]int{{b, h, q, d}, {b, kv, k, d}, {b, kv, k, v}}
	},
	"CrossEntropy":          func(s *sequence) [][]int { return [][]int{{s.size(), 1 + s.IntN(9)}} },
	"Array.Quantize":        func(s *sequence) [][]int { return [][]int{{s.size(), s.pick(32, 64, 128)}} },
	"Array.QQMatMul":        func(s *sequence) [][]int { return [][]int{{1, s.pick(64, 128)}} },
	"Array.QuantizedMatMul": func(s *sequence) [][]int { return [][]int{{s.size(), s.pick(64, 128)}} },
	"Array.GatherQMM":       func(s *sequence) [][]int { return [][]int{{2, s.size(), s.pick(64, 128)}} },
	"Array.GatherMM": func(s *sequence) [][]int {
		k := s.size()
		return [][]int{{2, s.size(), k}, {3, k, s.size()}}
	},
	"Array.BlockMaskedMM": func(s *sequence) [][]int {
		k := s.pick(32, 33, 64, 5)
		return [][]int{{s.pick(32, 40), k}, {k, s.pick(32, 7)}}
	},
	"Array.SegmentedMM": func(s *sequence) [][]int {
		k := s.size()
		return [][]int{{s.size(), k}, {k, s.size()}}
	},
	"RoPE": func(s *sequence) [][]int { return [][]int{{s.pick(1, 2), s.pick(1, 3), s.size(), s.pick(4, 8, 10)}} },
	"RoPEDynamic": func(s *sequence) [][]int {
		return [][]int{{s.pick(1, 2), s.pick(1, 3), s.size(), s.pick(4, 8, 10)}, {}}
	},
	"Array.HadamardTransform": func(s *sequence) [][]int {
		return [][]int{{
			s.size(),
			s.pick(1, 2, 12, 20, 28, 64, 40),
		}}
	},
}

// convolution draws the shapes of an input and a kernel.
func (s *sequence) convolution(dims int) [][]int {
	input, weight := []int{s.pick(1, 2, 0)}, []int{s.pick(1, 2, 4)}
	for range dims {
		input = append(input, 1+s.IntN(7))
		weight = append(weight, 1+s.IntN(3))
	}
	channels := s.pick(1, 2, 4)
	return [][]int{append(input, channels), append(weight, s.pick(channels, channels, 1))}
}
