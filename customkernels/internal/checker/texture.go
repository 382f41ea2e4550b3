package checker

// Texture describes the pixels of a texture.
type Texture struct {
	Extent    [4]int // width, height, depth and layers; 1 for an axis that the texture does not have
	Component Component
	Channels  int // 1, 2 or 4
}

// Component is the storage of one component of a pixel.
type Component uint32

// The components, in the order of worker/pixel.h.
const (
	Unorm8 Component = iota + 1
	Snorm8
	Unorm16
	Snorm16
	Uint8
	Sint8
	Uint16
	Sint16
	Uint32
	Sint32
	Float16
	Float32
)

// PixelAt returns the place of the pixel of a TextureBounds finding. Large unsigned coordinates are negative.
func (f Finding) PixelAt() (x, y, z, layer int) {
	return int(int32(f.Offset)), int(int32(f.Offset >> 32)), int(int32(f.Address)), int(int32(f.Address >> 32))
}
