"""What is measured with: transcripts made from installed source text, and real ones given by path."""
