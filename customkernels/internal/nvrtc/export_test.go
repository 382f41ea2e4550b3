package nvrtc

// CompilerForTest skips the test without NVRTC.
var CompilerForTest = compiler
