package sanitizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/checker"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// components holds the storage of a pixel's component of each dtype that a texture may have.
var components = map[DType]checker.Component{
	Unorm8: checker.Unorm8, Snorm8: checker.Snorm8, Unorm16: checker.Unorm16, Snorm16: checker.Snorm16,
	Uint8: checker.Uint8, Int8: checker.Sint8, Uint16: checker.Uint16, Int16: checker.Sint16,
	Uint32: checker.Uint32, Int32: checker.Sint32, Float16: checker.Float16, Float32: checker.Float32,
}

// readAs holds the dtypes of the textures with an element type of Metal.
var readAs = map[DType][]DType{
	Float32: {Unorm8, Snorm8, Unorm16, Snorm16, Float16, Float32},
	Float16: {Unorm8, Snorm8, Unorm16, Snorm16, Float16, Float32},
	Int32:   {Int8, Int16, Int32}, Int16: {Int8, Int16, Int32},
	Uint32: {Uint8, Uint16, Uint32}, Uint16: {Uint8, Uint16, Uint32},
}

// The largest sizes of textures of Apple's GPUs.
const (
	mostPixels = 16384 // along the width and height
	mostLayers = 2048  // of an array, or along the depth
)

// checkTexture returns an error if a shape or dtype does not fit a texture.
func checkTexture(b *msl.Buffer, d DType, shape []int, types typeArguments) error {
	axes := b.Texture.Axes()
	example := fmt.Sprintf("%s=FORMAT[%s], such as rgba8unorm or r32float", b.Name, strings.Join(axes, ","))
	if len(shape) != len(axes)+1 {
		return fmt.Errorf("%s is a %s and its array has the shape %v, which must be %s and the components of a pixel: "+
			"describe it as %s", b.Name, b.Texture, shape, strings.Join(axes, ", "), example)
	}
	if n := shape[len(axes)]; n != 1 && n != 2 && n != 4 {
		return fmt.Errorf("a pixel of the texture %s has %d components; it must have 1, 2 or 4", b.Name, n)
	}
	for i, axis := range axes {
		most := mostPixels
		if axis == "LAYERS" || axis == "DEPTH" {
			most = mostLayers
		}
		if shape[i] < 1 || shape[i] > most {
			return fmt.Errorf("the %s of the texture %s is %d; it must be from 1 to %d", strings.ToLower(axis), b.Name, shape[i],
				most)
		}
	}
	if _, ok := components[d]; !ok {
		return fmt.Errorf("a texture such as %s cannot hold %v: describe it as %s", b.Name, d, example)
	}
	element, ok := elementType(b, types)
	if allowed := readAs[element]; ok && !slices.Contains(allowed, d) {
		if allowed == nil {
			return fmt.Errorf("the texture %s has the component type %s; it must be float, half, int, uint, short or ushort",
				b.Name, b.Element)
		}
		return fmt.Errorf("the texture %s is declared %s<%s> and cannot hold %v; its components must be one of %v", b.Name,
			b.Texture, b.Element, d, allowed)
	}
	return nil
}

// textureOf returns the description of a texture for the checker.
func textureOf(b *msl.Buffer, d DType, shape []int) *checker.Texture {
	t := &checker.Texture{Extent: [4]int{1, 1, 1, 1}, Component: components[d], Channels: shape[len(shape)-1]}
	for i, axis := range b.Texture.Axes() {
		at := slices.Index([]string{"WIDTH", "HEIGHT", "DEPTH", "LAYERS"}, axis)
		t.Extent[at] = shape[i]
	}
	return t
}

// asTexture makes the buffer a texture if b is one.
func asTexture(buffer checker.Buffer, b *msl.Buffer, d DType, shape []int) checker.Buffer {
	if b.Texture != "" {
		buffer.Texture = textureOf(b, d, shape)
		buffer.Element = d.Size() * buffer.Texture.Channels
	}
	return buffer
}

// texture returns the texture at a slot of a finding, or nil.
func (s *checkerRun) texture(slot int) *checker.Texture {
	if slot < 0 || slot >= len(s.buffers) {
		return nil
	}
	return s.buffers[slot].Texture
}

// pixelName returns the name of a pixel for messages, such as image(3, 2). A layer has the word layer before it.
func pixelName(name string, t *checker.Texture, x, y, z, layer int) string {
	text := fmt.Sprintf("%s(%d", name, x)
	if t.Extent[1] > 1 || y != 0 {
		text += fmt.Sprintf(", %d", y)
	}
	if t.Extent[2] > 1 || z != 0 {
		text += fmt.Sprintf(", %d", z)
	}
	if t.Extent[3] > 1 || layer != 0 {
		text += fmt.Sprintf(", layer %d", layer)
	}
	return text + ")"
}

// pixelAt returns the place of a pixel from its index.
func pixelAt(t *checker.Texture, index int) (x, y, z, layer int) {
	n := t.Extent
	return index % n[0], index / n[0] % n[1], index / n[0] / n[1] % n[2], index / n[0] / n[1] / n[2]
}

// boundsMessage returns the message of an access outside of a texture.
func boundsMessage(f Finding, w checker.Finding, t *checker.Texture) string {
	if t == nil { // a shader changed the worker's data
		return fmt.Sprintf("%v accesses a pixel outside of a texture: check the position", f.Threads[0])
	}
	x, y, z, layer := w.PixelAt()
	if w.Detail > 0 {
		return fmt.Sprintf("%v uses mipmap level %d of %s: the checker has level 0 only", f.Threads[0], w.Detail, f.Buffer)
	}
	size := fmt.Sprint(t.Extent[0])
	for i, unit := range []string{"", "", " layers"} {
		if n := t.Extent[i+1]; n > 1 {
			size += fmt.Sprintf(" × %d%s", n, unit)
		}
	}
	place := pixelName(f.Buffer, t, x, y, z, layer)
	if w.Write {
		return fmt.Sprintf("%v writes %s, outside of the texture of %s, and Metal drops the write: compare the position with "+
			"the texture's size first", f.Threads[0], place, size)
	}
	return fmt.Sprintf("%v reads %s, outside of the texture of %s, and Metal returns zeros: compare the position with the "+
		"texture's size first, or sample with an address mode", f.Threads[0], place, size)
}
