from archived_boards import alone, new_board

__all__ = ["alone", "new_board"]
