"""Kernel programs: functions of `tfrt` and `corert` kernels that drive the op-by-op runtime; read, verified, printed here."""
