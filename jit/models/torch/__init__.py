"""The door for PyTorch modules: torch.export's programs made ready for torch-mlir, and PyTorch to check against. May import
torch_mlir and lowering."""
