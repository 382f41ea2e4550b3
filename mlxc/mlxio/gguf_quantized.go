package mlxio

import (
	"bufio"
	endian "encoding/binary"
	"io"
	"os"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// unpack lets MLX read one quantized tensor from a temporary file that contains only this tensor. MLX's reader does not
// read the user's file because it misreads some metadata, opens the file for writing (fault gguf-opened-for-writing),
// and would trust the file even if it changed after the check.
func (t ggufTensor) unpack(from elementSource, start int64) (arrays []*mlxc.Array, err error) {
	data, err := from.section(start+t.begin, t.end-t.begin)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "mlxgrad-*.gguf")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	alone, write := t, copyElements
	alone.name, alone.begin = "t.weight", 0
	if t.kind.name == "Q4_K" {
		alone.kindNumber, write = ggufQ4_1, asQ4_1
	}
	h := ggufHeader{alignment: ggufAlignment}
	h.begin(1, 0)
	h.tensor(alone)
	h.pad()
	w := bufio.NewWriter(f)
	if _, err := w.Write(h.Bytes()); err != nil {
		return nil, err
	}
	if err := write(w, data, t.end-t.begin); err != nil {
		return nil, truncated(err)
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	names := []string{alone.name}
	if t.kind.triple {
		names = append(names, "t.scales", "t.biases")
	}
	return core.LoadGGUF(f.Name(), names)
}

func copyElements(w io.Writer, r io.Reader, n int64) error {
	_, err := io.CopyN(w, r, n)
	return err
}

// asQ4_1 converts n bytes of Q4_K to Q4_1, which has the same groups of 32. MLX's reader of Q4_K uses the scale and
// minimum of every second group for the following group too (fault gguf-q4-k-scales). A block of Q4_K has the float16
// factors d and dmin, eight 6-bit scales and minima, and 256 4-bit numbers: weight = d·scale·number − dmin·minimum.
//
// The scales and minima take 12 bytes. The first four scales are the low 6 bits of bytes 0 to 3, the first four minima
// the low 6 bits of bytes 4 to 7. The other scales have their low 4 bits in the low halves of bytes 8 to 11 and their
// high 2 bits in the high bits of bytes 0 to 3. The other minima have their low 4 bits in the high halves of bytes 8 to
// 11 and their high 2 bits in the high bits of bytes 4 to 7 (dequantize_row_q4_K in ggml). Of 32 bytes of numbers, the
// low halves are one group and the high halves the next.
func asQ4_1(w io.Writer, r io.Reader, n int64) error {
	block := make([]byte, 144)
	for ; n > 0; n -= int64(len(block)) {
		if _, err := io.ReadFull(r, block); err != nil {
			return err
		}
		factor := func(i int) float32 { return float16.Frombits(endian.LittleEndian.Uint16(block[i:])).Float32() }
		d, dmin, six, numbers := factor(0), factor(2), block[4:16], block[16:]
		for g := range 8 {
			scale, minimum := six[g%4]&63, six[g%4+4]&63
			if g >= 4 {
				scale, minimum = six[g+4]&15|six[g-4]>>6<<4, six[g+4]>>4|six[g]>>6<<4
			}
			group := numbers[g/2*32:][:32]
			number := func(i int) byte { return group[i] >> (g % 2 * 4) & 15 }
			out := endian.LittleEndian.AppendUint16(nil, float16.Fromfloat32(d*float32(scale)).Bits())
			out = endian.LittleEndian.AppendUint16(out, float16.Fromfloat32(-dmin*float32(minimum)).Bits())
			for i := range 16 {
				out = append(out, number(i)|number(i+16)<<4)
			}
			if _, err := w.Write(out); err != nil {
				return err
			}
		}
	}
	return nil
}
