"""Training the encoder for this job: own requests for the operations of public APIs.

::

    corpus     requests.tsv + operations.jsonl + ``requests/``, whole documents -> requests, operations
    exclusions what may never be trained on: the judges' publishers, and texts near the judges' own
    split      whole APIs that training leaves out (held_out.txt); the ranker is fitted on them
    pool       which requests are trained on, which are negatives (nothing serves them), and which are neither
    batches    some requests of each of some APIs; beside them siblings, mined operations, unserved requests
    mine       per request the wrong operations of its document that the model takes for right
    augment    spelling mistakes
    recipe     the settings, and the record that a run leaves
    model      base weights and tokenizer: texts to vectors
    bert       the network, without padding
    loss       both directions, other right answers left out
    loop       steps, learning rate, checkpoints; what of a text is shown (misspelt, glossed, bare)
    export     the folder that ``load_encoder(cache, model=FOLDER)`` reads
    validate   the dense side alone on the held-out APIs
    command    all of it, for ``capdex bench train``
    words      the engine's list of common words, from the same data

Importing this package imports no torch.
"""

from .corpus import Corpus, Request, read_corpus
from .split import choose_held_out, held_out_sets, read_held_out

__all__ = ["Corpus", "Request", "choose_held_out", "held_out_sets", "read_corpus", "read_held_out"]
