package msl

import "strings"

// PositionTypes holds the thread-position attributes that MLX's custom kernels support. The value is the type with
// which MLX declares the argument.
var PositionTypes = map[string]string{
	"dispatch_quadgroups_per_threadgroup": "uint",
	"dispatch_simdgroups_per_threadgroup": "uint",
	"dispatch_threads_per_threadgroup":    "uint3",
	"grid_origin":                         "uint3",
	"grid_size":                           "uint3",
	"quadgroup_index_in_threadgroup":      "uint",
	"quadgroups_per_threadgroup":          "uint",
	"simdgroup_index_in_threadgroup":      "uint",
	"simdgroups_per_threadgroup":          "uint",
	"thread_execution_width":              "uint",
	"thread_index_in_quadgroup":           "uint",
	"thread_index_in_simdgroup":           "uint",
	"thread_index_in_threadgroup":         "uint",
	"thread_position_in_grid":             "uint3",
	"thread_position_in_threadgroup":      "uint3",
	"threadgroup_position_in_grid":        "uint3",
	"threadgroups_per_grid":               "uint3",
	"threads_per_grid":                    "uint3",
	"threads_per_simdgroup":               "uint",
	"threads_per_threadgroup":             "uint3",
}

// dtypes maps MSL's names of element types to the names that MLX uses for its dtypes in generated texts.
var dtypes = map[string]string{
	"bool": "bool", "bfloat": "bfloat16_t", "half": "float16_t", "float": "float",
	"int8_t": "int8_t", "int16_t": "int16_t", "int32_t": "int32_t", "int64_t": "int64_t",
	"uint8_t": "uint8_t", "uint16_t": "uint16_t", "uint32_t": "uint32_t", "uint64_t": "uint64_t",
	"uchar": "uint8_t", "short": "int16_t", "ushort": "uint16_t", "int": "int32_t", "uint": "uint32_t",
	"long": "int64_t", "ulong": "uint64_t", "unsigned": "uint32_t", "unsigned int": "uint32_t",
	"unsigned char": "uint8_t", "unsigned short": "uint16_t", "unsigned long": "uint64_t", "size_t": "uint64_t",
	"float16_t": "float16_t", "bfloat16_t": "bfloat16_t", "complex64_t": "complex64_t",
}

// DType returns MLX's name of an MSL element type in generated texts, for example "float16_t" for half. It returns ""
// for a type that is not an MLX dtype.
func DType(element string) string { return dtypes[element] }

// attributes holds the attributes without a prefix that a shader may name in [[…]]: those of the Metal Shading Language
// Specification, in the order of its chapters, and those of C++.
var attributes = words(`
	buffer texture sampler threadgroup threadgroup_imageblock id function_constant function_groups
	vertex fragment kernel tile object mesh visible stitchable intersection user host_name patch early_fragment_tests
	max_total_threads_per_threadgroup max_total_threadgroups_per_mesh_grid required_threads_per_threadgroup
	attribute stage_in raster_order_group payload
	amplification_count amplification_id base_instance base_vertex instance_id vertex_id
	patch_id position_in_patch
	clip_distance invariant point_size position render_target_array_index viewport_array_index shared
	barycentric_coord front_facing point_coord primitive_id sample_id sample_mask color index depth stencil
	center_no_perspective center_perspective centroid_no_perspective centroid_perspective flat
	sample_no_perspective sample_perspective
	dispatch_quadgroups_per_threadgroup dispatch_simdgroups_per_threadgroup dispatch_threads_per_threadgroup
	grid_origin grid_size stage_in_grid_origin stage_in_grid_size
	quadgroup_index_in_threadgroup quadgroups_per_threadgroup simdgroup_index_in_threadgroup simdgroups_per_threadgroup
	thread_execution_width thread_index_in_quadgroup thread_index_in_simdgroup thread_index_in_threadgroup
	thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid threadgroups_per_grid
	threads_per_grid threads_per_simdgroup threads_per_threadgroup
	pixel_position_in_tile pixels_per_tile tile_index
	imageblock_data alias_implicit_imageblock alias_implicit_imageblock_color
	accept_intersection continue_search distance opaque_primitive origin direction min_distance max_distance
	world_space_origin world_space_direction geometry_id geometry_intersection_function_table_offset
	instance_intersection_function_table_offset user_instance_id instance_count time motion_start_time motion_end_time
	key_frame_count object_to_world_transform world_to_object_transform primitive_data curve_parameter
	carries_dependency deprecated fallthrough likely maybe_unused nodiscard noreturn unlikely`)

// words returns the set of words in a text.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
