"""Training the encoder for this job: own requests for the operations of public APIs.

::

    corpus     requests.tsv + operations.jsonl -> requests and operations, numbered
    exclusions what may never be trained on: the judges' publishers, and texts near the judges' own
    split      whole APIs that training leaves out (held_out.txt); the ranker is fitted on them
    batches    eight APIs, eight requests each: siblings are the negatives
    bert       the network, without padding
    loss       both directions, other right answers left out
    loop       steps, learning rate, checkpoints
    export     the folder that ``load_encoder(cache, model=FOLDER)`` reads
    validate   the dense side alone on the held-out APIs
    command    all of it, for ``capdex bench train``

Importing this package imports no torch.
"""

from .corpus import Corpus, Request, read_corpus
from .split import choose_held_out, held_out_sets, read_held_out

__all__ = ["Corpus", "Request", "choose_held_out", "held_out_sets", "read_corpus", "read_held_out"]
