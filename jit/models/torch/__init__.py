"""The importer of PyTorch modules: torch.export's programs, prepared for torch-mlir, and PyTorch as a reference for checks. May
import torch_mlir and lowering."""
