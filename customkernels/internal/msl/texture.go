package msl

import (
	"cmp"
	"slices"
	"strings"
)

// TextureKind is a type of texture, such as texture2d.
type TextureKind string

// The types of textures that kernels of [ParseNative] may have.
const (
	Texture1D      TextureKind = "texture1d"
	Texture1DArray TextureKind = "texture1d_array"
	Texture2D      TextureKind = "texture2d"
	Texture2DArray TextureKind = "texture2d_array"
	Texture3D      TextureKind = "texture3d"
)

var textureKinds = []TextureKind{Texture1D, Texture1DArray, Texture2D, Texture2DArray, Texture3D}

// isTexture reports whether a word is the name of a supported texture type.
func isTexture(word string) bool { return slices.Contains(textureKinds, TextureKind(word)) }

// UsesTextures reports whether the text names a texture or sampler type.
func (s *Structure) UsesTextures() bool {
	return slices.ContainsFunc(s.Tokens, func(t Token) bool {
		return t.Kind == Identifier && (isTexture(t.Text) || t.Text == "sampler")
	})
}

// joined returns the names of texture types, separated by commas.
func joined(kinds []TextureKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}

// Axes returns the names of the axes in the order of a shape, without the components of a pixel.
func (t TextureKind) Axes() []string {
	switch t {
	case Texture1D:
		return []string{"WIDTH"}
	case Texture1DArray:
		return []string{"LAYERS", "WIDTH"}
	case Texture2D:
		return []string{"HEIGHT", "WIDTH"}
	case Texture2DArray:
		return []string{"LAYERS", "HEIGHT", "WIDTH"}
	case Texture3D:
		return []string{"DEPTH", "HEIGHT", "WIDTH"}
	}
	return nil
}

// A Sampler is a kernel's sampler argument.
type Sampler struct {
	Name string
	Pos  Position
}

// textureSlot is the slot of the first texture. Textures follow all buffers.
const textureSlot = 1 << 16

// TextureType returns the kind, element type and access of a texture type such as texture2d<float, access::read>. ok is
// false for another type.
func TextureType(element string) (kind TextureKind, component, access string, ok bool) {
	name, arguments, ok := strings.Cut(strings.TrimPrefix(element, "metal::"), "<")
	kind = TextureKind(name)
	if !ok || !slices.Contains(textureKinds, kind) {
		return "", "", "", false
	}
	component, access, _ = strings.Cut(strings.TrimSuffix(arguments, ">"), ",")
	access = access[strings.LastIndex(access, ":")+1:]
	return kind, strings.TrimSpace(component), cmp.Or(access, "sample"), true
}

// pixelArgument adds a texture or sampler argument. element is its type. ok is false for another argument.
func (p *parser) pixelArgument(k *Kernel, name int, element string, attributes [][2]int) (ok bool, err error) {
	text := p.Tokens[name].Text
	kind, component, access, isTexture := TextureType(element)
	if !isTexture && element != "sampler" {
		return false, nil
	}
	allowed, index := "sampler", -1
	if isTexture {
		allowed = "texture"
	}
	for _, a := range attributes {
		switch attribute := p.Tokens[a[0]].Text; attribute {
		case allowed:
			if n, ok := p.integer(a[0]+2, a[1]-2); ok {
				index = n
			}
		case "function_constant", "maybe_unused":
		default:
			return true, p.ErrorAt(a[0], "the attribute %s does not fit the %s argument %s; use [[%s(n)]]", attribute, allowed,
				text, allowed)
		}
	}
	at := p.Position(p.Tokens[name])
	if !isTexture {
		k.Samplers = append(k.Samplers, Sampler{text, at})
		return true, nil
	}
	accesses := []string{"sample", "read", "write", "read_write"}
	if !slices.Contains(accesses, access) {
		return true, p.ErrorAt(name, "the texture %s has the access %q; it must be one of %s", text, access,
			strings.Join(accesses, ", "))
	}
	k.Buffers = append(k.Buffers, &Buffer{
		Name: text, Pos: at, Space: Device, Const: access == "read" || access == "sample",
		Element: component, Index: index, Texture: kind,
	})
	return true, nil
}

// numberTextures assigns a slot to every texture.
func (p *parser) numberTextures(k *Kernel) error {
	used := map[int]*Buffer{}
	for _, b := range k.Buffers {
		if b.Texture == "" || b.Index < 0 {
			continue
		}
		if other := used[b.Index]; other != nil {
			return Errorf(b.Pos, "%s and %s both have [[texture(%d)]]; give each its own number", other.Name, b.Name, b.Index)
		}
		used[b.Index], b.Slot = b, textureSlot+b.Index
	}
	free := 0
	for _, b := range k.Buffers {
		if b.Texture != "" && b.Index < 0 {
			for used[free] != nil {
				free++
			}
			used[free], b.Slot = b, textureSlot+free
		}
	}
	return nil
}
