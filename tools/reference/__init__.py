"""DeepSeek-V4.1-Flash text model, written to be read: plain PyTorch on the CPU, one sequence, all tokens at once.

This is the definition the engine is compared with. Every rounding of the released model appears as a call in the code
(`nx.bf16`, `nx.fp8`, ...); between roundings values are float32. Sums over channels and keys are accumulated in float64
unless asked otherwise; sums over a handful of terms (streams, experts, Sinkhorn) stay float32, in order.

Reading order: config, numerics, rope, mhc, engram_hash, engram, indexer, attention, moe, model.
"""
