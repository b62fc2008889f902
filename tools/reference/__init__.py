"""DeepSeek-V4.1-Flash text model, written to be read: plain PyTorch on the CPU, one sequence, all tokens at once.

This is the definition the engine is compared with. Every rounding of the released model appears as a call in the code
(`nx.bf16`, `nx.fp8`, ...); between roundings values are float32, and sums are accumulated in float64 unless asked otherwise.

Reading order: config, numerics, rope, mhc, engram_hash, engram, indexer, attention, moe, model.
"""
